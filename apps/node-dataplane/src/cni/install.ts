import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CNI_PLUGIN } from './config.ts';

/** Copies our CNI plug-in to where the runtime looks for plug-ins, if it is not there like that already. */
export const installCniPlugin = (source: string, folder: string): void => {
  const target = join(folder, CNI_PLUGIN);
  if (existsSync(target) && readFileSync(target).equals(readFileSync(source))) return;
  mkdirSync(folder, { recursive: true });
  copyFileSync(source, `${target}.new`); // the one there may be running: it is replaced, not overwritten
  renameSync(`${target}.new`, target);
};

export const removeCniPlugin = (folder: string): void => rmSync(join(folder, CNI_PLUGIN), { force: true });
