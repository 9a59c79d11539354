import { existsSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';

/** The folder of pinned programs: one version of several that stand side by side, and nothing else is ever removed. */

const VERSION = /^v[0-9]{1,4}$/;
const PINS = /\/unbounded\/v[0-9]{1,4}$/;

/** What is wrong with the folder; undefined: nothing. Its parent is ours, which is why its name is fixed. */
export const pinFolderProblem = (folder: string): string | undefined =>
  PINS.test(normalize(folder).replace(/\/$/, '')) && folder.startsWith('/')
    ? undefined
    : `--bpffs-dir is "${folder}": must end in /unbounded/v<number>, for example /sys/fs/bpf/unbounded/v1, because uninstall removes all versions beside it`;

/** @throws Error naming the flag, the value and what is valid */
export const checkPinFolder = (folder: string): void => {
  const problem = pinFolderProblem(folder);
  if (problem !== undefined) throw new Error(problem);
};

const parentOf = (folder: string): string => dirname(normalize(folder).replace(/\/$/, ''));

/** The folders of other versions beside one. */
export const otherLayouts = (folder: string): string[] => {
  const own = normalize(folder).replace(/\/$/, '');
  const parent = dirname(own);
  if (!existsSync(parent)) return [];
  return readdirSync(parent)
    .filter((name) => VERSION.test(name) && name !== basename(own))
    .map((name) => join(parent, name));
};

/** Removes the layouts of all versions, and their folder when nothing else is in it. @throws Error for a folder that is not ours */
export const removePins = (folder: string): void => {
  checkPinFolder(folder);
  const parent = parentOf(folder);
  if (!existsSync(parent)) return;
  for (const name of readdirSync(parent))
    if (VERSION.test(name)) rmSync(join(parent, name), { recursive: true, force: true });
  if (readdirSync(parent).length === 0) rmdirSync(parent);
};

/** Uninstall: removes what sections other than connectivity have pinned, in folders beside, which hold versions and nothing else. */
export const removeSectionPins = (folder: string): void => {
  checkPinFolder(folder);
  const parent = parentOf(folder);
  if (!existsSync(parent)) return;
  for (const { name } of readdirSync(parent, { withFileTypes: true }).filter((entry) => entry.isDirectory())) {
    const section = join(parent, name);
    if (!VERSION.test(name) && readdirSync(section).every((one) => VERSION.test(one)))
      rmSync(section, { recursive: true, force: true });
  }
};
