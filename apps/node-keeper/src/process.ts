import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

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
  end(): void;
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

const processOf = (pid: number, identity: string, file: string): KeptProcess => ({
  pid,
  isAlive: () => identify(pid) === identity,
  end() {
    if (identify(pid) === identity) process.kill(pid, 'SIGTERM');
    rmSync(file, { force: true });
  },
});

/** The process that an earlier keeper started under the name, if it still runs. */
export const findProcess = (folder: string, name: string): KeptProcess | undefined => {
  const file = join(folder, name);
  if (!existsSync(file)) return undefined;
  const identity = readFileSync(file, 'utf8');
  const pid = Number(identity.split(' ')[0]);
  return pid > 0 && identify(pid) === identity ? processOf(pid, identity, file) : undefined;
};

/** @throws Error when the program cannot be run */
export const startProcess = (folder: string, name: string, { program, args, env }: Command): Promise<KeptProcess> =>
  new Promise((resolve, reject) => {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    // Its log comes with ours.
    const child = spawn(program, args, { detached: true, stdio: ['ignore', 'inherit', 'inherit'], env });
    child.once('error', (error) => reject(new Error(`${program} cannot be run: ${error.message}`)));
    child.once('spawn', () => {
      child.unref();
      const pid = child.pid!;
      const identity = identify(pid) ?? `${pid} 0`;
      const file = join(folder, name);
      writeFileSync(file, identity);
      resolve(processOf(pid, identity, file));
    });
  });
