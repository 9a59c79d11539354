import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parsePatch } from './patch-file.ts';

const root = join(import.meta.dirname, '../../..');
const paths = globSync('tools/faults/*.patch', { cwd: root }).sort();

const faults = paths.map((path) => ({ path, ...parsePatch(path, readFileSync(join(root, path), 'utf8')) }));
type Patch = (typeof faults)[number];

const absentCatchers = ({ path, catchers }: Patch): string[] =>
  catchers.filter(({ file }) => !existsSync(join(root, file))).map(({ file }) => `${path}: there is no ${file}`);

/** Patches of one git: each changes files that none of the others does. */
const disjoint = (patches: readonly Patch[]): Patch[][] => {
  const batches: { readonly changed: Set<string>; readonly patches: Patch[] }[] = [];
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
const refusals = (patches: readonly Patch[]): string[] => {
  try {
    execFileSync('git', ['apply', '--check', ...patches.map(({ path }) => path)], { cwd: root, stdio: 'pipe' });
    return [];
  } catch (error) {
    const [only, ...others] = patches;
    if (others.length > 0) return patches.flatMap((patch) => refusals([patch]));
    return [`${only!.path}: ${(error as { stderr: Buffer }).stderr.toString()}`];
  }
};

// Whether tests notice the faults is shown by `tools/test faults`, which takes hours.
test('every fault can be put into the tree as it is, and names specs that exist', { timeout: 60_000 }, () => {
  expect(paths.length).toBeGreaterThan(100);
  expect([...faults.flatMap(absentCatchers), ...disjoint(faults).flatMap(refusals)]).toEqual([]);
});
