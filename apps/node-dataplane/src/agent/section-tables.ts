import { nftTableOf } from '@unbounded/config/ownership';
import type { Nftables, TableFamily } from '@unbounded/nftables';
import type { Logger } from '@unbounded/telemetry';
import type { TableDrops } from '../kernel/drop-metrics.ts';
import { createSectionTable, type SectionTable } from '../kernel/section-table.ts';
import { watchTable } from '../kernel/table-watch.ts';
import type { SectionType } from '../section.port.ts';

/** The nftables tables of one section, each watched from when the section asks for it until the section stops. */
export interface SectionTables extends Disposable {
  of(family: TableFamily): SectionTable;
}

export interface SectionTablesParts {
  readonly nft: Nftables;
  readonly newDrops: () => TableDrops;
  /** A table of the section has changed, by whomever. */
  readonly onChange: () => void;
  readonly logger: Logger;
}

export const createSectionTables = (
  { name: section, baseChains = [] }: Pick<SectionType, 'name' | 'baseChains'>,
  { nft, newDrops, onChange, logger }: SectionTablesParts,
): SectionTables => {
  const tables = new Map<TableFamily, SectionTable>();
  const watches: Disposable[] = [];
  return {
    of(family) {
      const known = tables.get(family);
      if (known) return known;
      const table = createSectionTable({ nft, section, family, baseChains, drops: newDrops(), logger });
      watches.push(watchTable(nft, { family, name: nftTableOf(section) }, { onChange, logger }));
      tables.set(family, table);
      return table;
    },
    [Symbol.dispose]() {
      for (const watch of watches.splice(0)) watch[Symbol.dispose]();
    },
  };
};
