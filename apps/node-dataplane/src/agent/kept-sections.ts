import { existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { keptPlanFile } from '@unbounded/config/ownership';
import { removeFile } from '@unbounded/state-files';
import type { KeptSection, VersionedPlan } from '../section.port.ts';
import { stateFile } from '../state/state-file.ts';
import type { StateFaults } from '../state/state-faults.ts';

/**
 * The last good plans of the sections, a file each: what one section writes costs no other a write, and what cannot be read of one
 * costs no other its plan.
 */
export interface KeptSections {
  of(section: string): KeptSection;
}

const isKept = (value: unknown): value is VersionedPlan =>
  typeof value === 'object' &&
  value !== null &&
  'plan' in value &&
  Number.isInteger((value as { version?: unknown }).version);

/** Of any section; also the one file of all sections that there was before the first release. */
const KEPT_FILE = /^plan(-.+)?\.json$/;

const removeUnlisted = (stateDir: string, names: readonly string[]): void => {
  if (!existsSync(stateDir)) return;
  const listed = new Set(names.map((name) => basename(keptPlanFile(name))));
  for (const file of readdirSync(stateDir))
    if (KEPT_FILE.test(file) && !listed.has(file)) removeFile(join(stateDir, file));
};

/** @param names of the agent's sections: the plans of others are removed */
export const openKeptSections = (stateDir: string, names: readonly string[], faults: StateFaults): KeptSections => {
  faults.attempt(stateDir, () => removeUnlisted(stateDir, names));
  return { of: (section) => stateFile(keptPlanFile(section, stateDir), isKept, faults) };
};
