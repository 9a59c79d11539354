import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

/** Which file of an app a test starts. */

const root = join(import.meta.dirname, '../../..');
const known = new Map<string, string>();

const find = (app: string): string => {
  const stale = execFileSync(join(root, 'tools/build'), ['--stale', app], { encoding: 'utf8' });
  return join(root, 'apps', app, stale === '' ? 'dist/main.mjs' : 'src/main.ts');
};

/**
 * The bundle of an app, which starts in a quarter of the processor time, or its source where that is newer: after a change without
 * tools/build, and in the copies of the tree in which tools/faults changes code.
 * @throws Error for a name that no app has
 */
export const appEntry = (app: string): string => {
  const entry = known.get(app) ?? find(app);
  known.set(app, entry);
  return entry;
};
