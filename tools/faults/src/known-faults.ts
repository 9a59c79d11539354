import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Catcher, type Fault, parsePatch } from './patch-file.ts';

/** Every fault that tools/faults has a patch of. */

export interface KnownFault extends Fault {
  /** From the top of the tree. */
  readonly path: string;
}

/** @throws Error naming the patch and what it lacks */
export const readFaults = (root: string): KnownFault[] =>
  globSync('tools/faults/*.patch', { cwd: root })
    .sort()
    .map((path) => ({ path, ...parsePatch(path, readFileSync(join(root, path), 'utf8')) }));

/** Tests that faults name and that their file has not, whoever renamed them: nobody would notice those faults. */
export const absentTests = (
  faults: readonly Fault[],
  { project, file, names }: Pick<Catcher, 'project' | 'file'> & { readonly names: readonly string[] },
): string[] =>
  faults.flatMap(({ name, catchers }) =>
    catchers
      .filter((catcher) => catcher.project === project && catcher.file === file)
      .filter(({ test }) => !names.some((own) => own.includes(test)))
      .map(({ test }) => `fault ${name} is caught by a test that is not there: "${test}"`),
  );
