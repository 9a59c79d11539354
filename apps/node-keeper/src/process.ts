import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { removeFile, replaceFile } from '@unbounded/state-files';

/** One of the keeper's processes. It is started in a session of its own and outlives the keeper; a pid file lets the next one find it. */

/** What is run; nothing of the keeper's own environment goes along. */
export interface Command {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface KeptProcess {
  readonly pid: number;
  isAlive(): boolean;
  signal(signal: NodeJS.Signals): void;
}

/** comm and start time (clock ticks since boot) from proc(5); undefined for a process that is gone or a zombie. */
const identify = (pid: number): string | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.replace(/^.*\) /s, '').split(' ');
    return fields[0] === 'Z' ? undefined : `${pid} ${fields[19]}`;
  } catch {
    return undefined;
  }
};

const processOf = (pid: number, identity: string): KeptProcess => ({
  pid,
  isAlive: () => identify(pid) === identity,
  signal(signal) {
    if (identify(pid) === identity) send(pid, signal);
  },
});

/** It may have ended since it was looked at. */
const send = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
};

/** A note that is not there, or cannot be read, names no process. */
const readNote = (file: string): string | undefined => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
};

/** Names of all processes that were started and not forgotten. */
export const notedProcesses = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder) : []);

/** Removes the note of a process: no later keeper finds it. */
export const forgetProcess = (folder: string, name: string): void => removeFile(join(folder, name));

/** The process that an earlier keeper started under the name, if it still runs. */
export const findProcess = (folder: string, name: string): KeptProcess | undefined => {
  const identity = readNote(join(folder, name));
  if (identity === undefined) return undefined;
  const pid = Number(identity.split(' ')[0]);
  return pid > 0 && identify(pid) === identity ? processOf(pid, identity) : undefined;
};

/**
 * @param onUnnoted the process runs, but no later keeper will find it
 * @throws Error when the program cannot be run
 */
export const startProcess = (
  folder: string,
  name: string,
  { program, args, env }: Command,
  onUnnoted: (error: Error) => void,
): Promise<KeptProcess> =>
  new Promise((resolve, reject) => {
    // Its log comes with ours.
    const child = spawn(program, args, { detached: true, stdio: ['ignore', 'inherit', 'inherit'], env });
    child.once('error', (error) => reject(new Error(`${program} cannot be run: ${error.message}`)));
    child.once('spawn', () => {
      child.unref();
      const pid = child.pid!;
      const identity = identify(pid) ?? `${pid} 0`;
      const file = join(folder, name);
      try {
        replaceFile(file, identity, { mode: 0o600 });
      } catch (error) {
        onUnnoted(error as Error);
      }
      resolve(processOf(pid, identity));
    });
  });
