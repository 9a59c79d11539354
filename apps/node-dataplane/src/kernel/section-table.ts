import { nftTableOf } from '@unbounded/config/ownership';
import type {
  ChainSpec,
  ElementsChange,
  Nftables,
  ObservedCounter,
  SetSpec,
  TableFamily,
  TableSpec,
} from '@unbounded/nftables';
import type { Logger } from '@unbounded/telemetry';
import type { BaseChain } from './base-chains.ts';
import type { TableDrops } from './drop-metrics.ts';
import { elementChange } from './element-change.ts';
import { createQueue } from './in-turn.ts';
import { joinBaseChains } from './joined-chains.ts';

/**
 * The nftables table of a section in one family. It is replaced as a whole, in one transaction; what the kernel refuses leaves the
 * former table in force, also that of a former process. Tables of other sections are not touched.
 */

export interface TableContent {
  readonly sets?: readonly SetSpec[];
  /** Named counters of packets that are dropped, for the metric: the names are its label `reason`. */
  readonly drops?: readonly string[];
  /** Named counters besides. */
  readonly counters?: readonly string[];
  /** Those with a base are chains that the section has registered (base-chains.ts); several of one place are joined (joined-chains.ts). */
  readonly chains: readonly ChainSpec[];
}

/**
 * As wanted; there, but not as wanted, because the kernel refused the change; missing; or not known, because the kernel did not
 * answer.
 */
export type TableState = 'inSync' | 'outdated' | 'missing' | 'unknown';

interface TableOutcome {
  readonly state: TableState;
  /** Why it is not as wanted. */
  readonly error?: Error;
}

export interface SectionTable {
  /**
   * Never rejects. The same content again repairs what others changed in the table, and writes nothing otherwise.
   * @param counts is told what the counters of the former table say, at each call and before they are gone
   */
  replace(content: TableContent, counts?: TableCounts): Promise<TableOutcome>;
  /**
   * Makes the table this content where that is a change of elements of sets of single addresses alone, without a look at what is there: what
   * others changed meanwhile is for the next `replace`.
   * @returns false: it is more than that, or nothing at all, or the kernel refused it; nothing has changed
   */
  changeSingles(content: TableContent): Promise<boolean>;
  /** Elements of a set of the table, which the next `replace` keeps in timed sets alone. @throws NftablesError, RangeError */
  changeElements(change: ElementsChange): Promise<void>;
}

/** What named counters of a table count, over all the tables that replaced one another. */
export interface TableCounts {
  observe(counters: readonly ObservedCounter[]): void;
  /** The table was written anew: its counters begin at zero. */
  restarted(): void;
}

export interface SectionTableParts {
  readonly nft: Nftables;
  readonly section: string;
  readonly family: TableFamily;
  /** That its table may have. */
  readonly baseChains: readonly BaseChain[];
  readonly drops?: TableDrops;
  readonly logger: Logger;
}

export const tableSpec = (
  section: string,
  { sets = [], drops = [], counters = [], chains }: TableContent,
  family: TableFamily = 'inet',
): TableSpec => ({
  family,
  name: nftTableOf(section),
  counters: [...drops, ...counters],
  sets,
  chains: joinBaseChains(chains),
});

/** @throws RangeError naming a base chain that is not registered as it is */
const checkBases = (
  { chains }: TableContent,
  { family, name: table }: Pick<TableSpec, 'family' | 'name'>,
  registered: readonly BaseChain[],
): void => {
  for (const { name, base } of chains) {
    if (!base) continue;
    const isKnown = registered.some(
      (one) =>
        one.family === family &&
        one.name === name &&
        one.type === base.type &&
        one.hook === base.hook &&
        one.priority === base.priority,
    );
    if (!isKnown)
      throw new RangeError(
        `chain ${name} of table ${family} ${table} at ${base.hook} ${base.priority} must be one of the base chains of its section`,
      );
  }
};

/** Undefined: it is more than elements, or nothing. */
const changeBetween = (before: TableContent | undefined, content: TableContent): ElementsChange | undefined => {
  const change = before && elementChange(before, content);
  return change && change.add.length + change.remove.length > 0 ? change : undefined;
};

export const createSectionTable = (parts: SectionTableParts): SectionTable => {
  const { nft, section, family, baseChains, drops, logger } = parts;
  const inTurn = createQueue();
  const place = { family, name: nftTableOf(section) };
  /** What the kernel took last. */
  let accepted: TableContent | undefined;

  const observe = async (content: TableContent, counts: TableCounts | undefined): Promise<void> => {
    const counters = await nft.readCounters(family, place.name);
    drops?.observe(counters, content.drops ?? []);
    counts?.observe(counters);
  };

  /** Where it is refused, the whole table may be taken. */
  const tryChange = (change: ElementsChange): Promise<boolean> =>
    nft.changeElements(place, change).then(
      () => true,
      () => false,
    );

  /** Of a table that is as it was left. */
  const changeElementsAlone = async (content: TableContent): Promise<boolean> => {
    const change = changeBetween(accepted, content);
    if (!accepted || !change || !(await nft.matches(tableSpec(section, accepted, family)))) return false;
    return tryChange(change);
  };

  const write = async (content: TableContent, counts?: TableCounts): Promise<void> => {
    checkBases(content, place, baseChains);
    const table = tableSpec(section, content, family);
    await observe(content, counts);
    if (await nft.matches(table)) return;
    if (await changeElementsAlone(content)) return;
    await observe(content, counts); // a new table counts from zero: as little as can be is lost
    await nft.replaceTable(table);
    drops?.restarted();
    counts?.restarted();
    logger.info({ section, table: place.name, family }, 'wrote the nftables table');
  };

  /** What others changed in the table is repaired also while the kernel refuses the next one. */
  const keepAccepted = async (counts: TableCounts | undefined): Promise<void> => {
    if (!accepted) return;
    await write(accepted, counts).catch((error: unknown) =>
      logger.warn({ section, error: (error as Error).message }, 'cannot repair the nftables table'),
    );
  };

  const stateAfterFailure = async (): Promise<TableState> => {
    try {
      return (await nft.hasTable(family, place.name)) ? 'outdated' : 'missing';
    } catch {
      return 'unknown';
    }
  };

  return {
    replace: (content, counts) =>
      inTurn(async () => {
        try {
          await write(content, counts);
          accepted = content;
          return { state: 'inSync' };
        } catch (error) {
          await keepAccepted(counts);
          return { state: await stateAfterFailure(), error: error as Error };
        }
      }),
    changeSingles: (content) =>
      inTurn(async () => {
        // Where nothing is written nothing shows that the table is there.
        const change = changeBetween(accepted, content);
        if (!change || !(await tryChange(change))) return false;
        accepted = content;
        return true;
      }),
    changeElements: (change) => inTurn(() => nft.changeElements(place, change)),
  };
};
