import { existsSync, globSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Which file of an app a test starts. */

const root = join(import.meta.dirname, '../../..');
/** What tools/build bundles anew for. */
const SOURCES = (app: string): string[] => [`apps/${app}/src/**/*.ts`, 'libs/*/src/**/*.ts', 'tools/bundle.ts'];

const modifiedMs = (file: string): number => statSync(join(root, file)).mtimeMs;
const known = new Map<string, string>();

const find = (app: string): string => {
  const [source, bundle] = [`apps/${app}/src/main.ts`, `apps/${app}/dist/main.mjs`];
  if (!existsSync(join(root, source))) throw new Error(`${source} does not exist: "${app}" is no app`);
  if (!existsSync(join(root, bundle))) return join(root, source);
  const bundledMs = modifiedMs(bundle);
  const changed = globSync(SOURCES(app), { cwd: root }).filter((file) => !file.endsWith('.spec.ts'));
  return join(root, changed.some((file) => modifiedMs(file) > bundledMs) ? source : bundle);
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
