import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { logFile, state } from './paths.ts';
import { startTime } from './proc.ts';

/** Processes that outlive the command that started them: pid files hold pid and start time, so that a reused pid is
 * never taken for ours. */

const pidFile = (name: string): string => join(state, 'pids', name);

/** Pid of the named process if it runs. */
export const pidOf = (name: string): number | undefined => {
  if (!existsSync(pidFile(name))) return undefined;
  const [pid = '0', started] = readFileSync(pidFile(name), 'utf8').split(' ');
  return started !== undefined && startTime(Number(pid)) === started ? Number(pid) : undefined;
};

/** Starts a process of its own session, with its output in the log of that name. */
export const startDaemon = (
  name: string,
  argv: readonly string[],
  options: { env?: NodeJS.ProcessEnv } = {},
): number => {
  const log = logFile(name);
  for (const file of [log, pidFile(name)]) mkdirSync(dirname(file), { recursive: true });
  const output = openSync(log, 'a');
  const child = spawn(argv[0]!, argv.slice(1), {
    detached: true,
    stdio: ['ignore', output, output],
    env: options.env ?? process.env,
  });
  child.on('error', (error) => {
    throw new Error(`${name} could not be started: ${error.message}`);
  });
  if (child.pid === undefined) throw new Error(`${name} could not be started: ${argv[0]} cannot be run`);
  child.unref();
  writeFileSync(pidFile(name), `${child.pid} ${startTime(child.pid) ?? ''}`);
  return child.pid;
};

/** Ends a process: asks, waits up to `graceMs`, then kills. */
export const stopDaemon = async (name: string, graceMs = 5000): Promise<void> => {
  const pid = pidOf(name);
  if (pid !== undefined) {
    process.kill(pid, 'SIGTERM');
    for (const end = Date.now() + graceMs; pidOf(name) !== undefined && Date.now() < end;) await delay(20);
    if (pidOf(name) !== undefined) process.kill(pid, 'SIGKILL');
  }
  rmSync(pidFile(name), { force: true });
};

/** The last lines of a process's log, for error messages. */
export const logTail = (name: string, lines = 5): string => {
  try {
    return readFileSync(logFile(name), 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
  } catch {
    return '(no log)';
  }
};
