import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { holds, removeFile, replaceFile } from '@unbounded/state-files';
import { createStateFaults, type StateFaults } from '../state/state-faults.ts';
import { CNI_PLUGIN } from './config.ts';

const MODES = { mode: 0o755, directoryMode: 0o755 };

/**
 * Copies our CNI plug-in to where the runtime looks for plug-ins, if it is not there like that already. What cannot be
 * written is reported by `faults`: the plug-in that is there serves until then.
 */
export const installCniPlugin = (source: string, folder: string, faults: StateFaults = createStateFaults()): void => {
  const target = join(folder, CNI_PLUGIN);
  faults.attempt(target, () => {
    const ours = readFileSync(source);
    if (!holds(target, ours)) replaceFile(target, ours, MODES); // the one there may be running: it is replaced
  });
};

export const removeCniPlugin = (folder: string): void => removeFile(join(folder, CNI_PLUGIN));
