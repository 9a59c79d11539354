import { chmodSync, lstatSync, mkdirSync, readFileSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import { DROP_IN_MARK, DROP_IN_NAME, MANAGER_DROP_INS, type ManagerDropIn } from '@unbounded/config/manager-drop-ins';
import { removeFile, replaceFile } from '@unbounded/state-files';
import type { Problem } from '@unbounded/topology';
import type { NodeEvent } from '../section.port.ts';

/**
 * Our files in the configuration of the host's network managers. A file of somebody else, and whatever a link leads to, is left alone:
 * a link of the host leads elsewhere in a container.
 */

/** Undefined: there is none. @throws Error that names the path, when it is something else */
const statAs = (path: string, kind: 'directory' | 'file'): Stats | undefined => {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (!stat) return undefined;
  if (stat.isSymbolicLink()) throw new Error(`${path} is a symbolic link, which is not followed`);
  if (kind === 'directory' ? !stat.isDirectory() : !stat.isFile()) throw new Error(`${path} is not a ${kind}`);
  return stat;
};

/**
 * What stands under the file's name: undefined where the manager is not installed, '' where there is no file yet.
 * @throws Error when the name, or a folder above it, is something else
 */
const readPlace = (etc: string, { home, folder }: ManagerDropIn): string | undefined => {
  if (!statAs(join(etc, home), 'directory')) return undefined;
  statAs(join(etc, home, folder), 'directory');
  const file = join(etc, home, folder, DROP_IN_NAME);
  if (!statAs(file, 'file')) return '';
  const content = readFileSync(file, 'utf8');
  if (!content.startsWith(DROP_IN_MARK))
    throw new Error(`${file} is not of Unbounded (its first line is another): rename or remove it`);
  return content;
};

/** systemd-networkd reads it as a user of its own. */
const writeDropIn = (etc: string, { home, folder, content }: ManagerDropIn): void => {
  const parent = join(etc, home, folder);
  if (!statAs(parent, 'directory')) {
    mkdirSync(parent);
    chmodSync(parent, 0o755); // whatever the umask
  }
  replaceFile(join(parent, DROP_IN_NAME), content, { mode: 0o644 });
};

/** For operators, who know the host's folder by its own name. */
const nameOnHost = ({ home, folder }: ManagerDropIn): string => `/etc/${home}/${folder}/${DROP_IN_NAME}`;
const reasonOnHost = (etc: string, error: unknown): string => (error as Error).message.replaceAll(`${etc}/`, '/etc/');

const refused = (etc: string, dropIn: ManagerDropIn, error: unknown): Problem => ({
  reason: 'NetworkManagerDropInRefused',
  message: `${nameOnHost(dropIn)} for ${dropIn.manager} is not written: ${reasonOnHost(etc, error)}; write it by hand, or set node-dataplane.networkManagerDropIns to false`,
});

const written = (dropIn: ManagerDropIn): NodeEvent => ({
  type: 'Normal',
  reason: 'NetworkManagerDropInWritten',
  action: 'WriteDropIn',
  note: `${nameOnHost(dropIn)} is written; ${dropIn.manager} goes by it after a restart of the host, or: ${dropIn.command}`,
});

export interface DropInOutcome {
  readonly problems: readonly Problem[];
  readonly events: readonly NodeEvent[];
}

/**
 * Writes what is missing or differs. No manager is restarted: that may take addresses away from the host.
 * @param etc where the host's /etc is
 */
export const ensureDropIns = (etc: string): DropInOutcome => {
  const problems: Problem[] = [];
  const events: NodeEvent[] = [];
  for (const dropIn of MANAGER_DROP_INS) {
    try {
      const present = readPlace(etc, dropIn);
      if (present === undefined || present === dropIn.content) continue;
      writeDropIn(etc, dropIn);
      events.push(written(dropIn));
    } catch (error) {
      problems.push(refused(etc, dropIn, error));
    }
  }
  return { problems, events };
};

/** Uninstall. What is not ours stays, and is named. @throws Error when a file of ours cannot be removed */
export const removeDropIns = (etc: string, say: (line: string) => void): void => {
  const failures: string[] = [];
  for (const dropIn of MANAGER_DROP_INS) {
    let present: string | undefined;
    try {
      present = readPlace(etc, dropIn);
    } catch (error) {
      say(`leaving ${nameOnHost(dropIn)}: ${reasonOnHost(etc, error)}`);
    }
    if (!present) continue;
    try {
      removeFile(join(etc, dropIn.home, dropIn.folder, DROP_IN_NAME));
      say(`removing ${nameOnHost(dropIn)}; ${dropIn.manager} goes without it after: ${dropIn.command}`);
    } catch (error) {
      failures.push(reasonOnHost(etc, error));
    }
  }
  if (failures.length > 0) throw new Error(failures.join('; '));
};
