import { join } from 'node:path';
import type { KeptSection, VersionedPlan } from '../section.port.ts';
import { stateFile } from '../state/state-file.ts';
import type { StateFaults } from '../state/state-faults.ts';

/**
 * The last good plans of all sections in one file. Beside the sections stand fields that agents read which knew none: connectivity
 * writes them as long as a rollback to such an agent is to be possible.
 */
export interface KeptSections {
  of(section: string): KeptSection;
}

type KeptFile = Readonly<Record<string, unknown>> & { readonly sections?: Readonly<Record<string, VersionedPlan>> };

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isKept = (value: unknown): value is VersionedPlan => isObject(value) && typeof value['version'] === 'number';

const isKeptFile = (value: unknown): value is KeptFile =>
  isObject(value) && (value['sections'] === undefined || isObject(value['sections']));

/** @param names of the agent's sections: what the file holds of others is dropped with the next write */
export const openKeptSections = (stateFolder: string, names: readonly string[], faults: StateFaults): KeptSections => {
  const file = stateFile(join(stateFolder, 'plan.json'), isKeptFile, faults);
  const { sections: found = {}, ...before } = file.read() ?? {};
  const atStart = new Map(Object.entries(found).filter(([, kept]) => isKept(kept)));
  const sections = new Map([...atStart].filter(([name]) => names.includes(name)));
  let former: object = before;
  return {
    of: (section) => ({
      read: () => atStart.get(section),
      former: () => (Object.keys(before).length === 0 ? undefined : before),
      write(kept, fields = former) {
        sections.set(section, kept);
        former = fields;
        file.write({ ...former, sections: Object.fromEntries(sections) });
      },
    }),
  };
};
