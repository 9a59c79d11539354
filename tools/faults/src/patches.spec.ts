import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type KnownFault, readFaults } from './known-faults.ts';

const root = join(import.meta.dirname, '../../..');
const faults = readFaults(root);

const absentSpecs = ({ path, catchers }: KnownFault): string[] =>
  catchers.filter(({ file }) => !existsSync(join(root, file))).map(({ file }) => `${path}: there is no ${file}`);

/** Patches of one git: each changes files that none of the others does. */
const disjoint = (patches: readonly KnownFault[]): KnownFault[][] => {
  const batches: { readonly changed: Set<string>; readonly patches: KnownFault[] }[] = [];
  for (const patch of patches) {
    const isFree = ({ changed }: (typeof batches)[number]): boolean =>
      patch.changed.every((file) => !changed.has(file));
    let batch = batches.find(isFree);
    if (!batch) batches.push((batch = { changed: new Set(), patches: [] }));
    batch.patches.push(patch);
    for (const file of patch.changed) batch.changed.add(file);
  }
  return batches.map((batch) => batch.patches);
};

/** What git says of those that cannot be applied. A start of git for each patch would take ten seconds. */
const refusals = (patches: readonly KnownFault[]): string[] => {
  try {
    execFileSync('git', ['apply', '--check', ...patches.map(({ path }) => path)], { cwd: root, stdio: 'pipe' });
    return [];
  } catch (error) {
    const [only, ...others] = patches;
    if (others.length > 0) return patches.flatMap((patch) => refusals([patch]));
    return [`${only!.path}: ${(error as { stderr: Buffer }).stderr.toString()}`];
  }
};

// That the specs have tests of those names is seen where they run, by the reporter of @unbounded/suite; that the tests notice the
// faults by `tools/test faults`.
test('every fault can be put into the tree as it is, and names specs that exist', { timeout: 60_000 }, () => {
  expect(faults.length).toBeGreaterThan(100);
  expect([...faults.flatMap(absentSpecs), ...disjoint(faults).flatMap(refusals)]).toEqual([]);
});
