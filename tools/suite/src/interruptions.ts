import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { parseProcessStat } from './process-stat.ts';

/**
 * Stops the processes of a run for a moment each, one after the other and at random (SIGSTOP, SIGCONT), as a busy machine does between any two of
 * their steps. What a spec or a program takes for one step, and is two, shows here.
 */

/** A time slice at best, what a busy machine was seen to take at worst (mostly the former). */
const LEAST_STOP_MS = 20;
const MOST_STOP_MS = 350;
const MOST_PAUSE_MS = 40;

interface ProcessState {
  readonly pid: number;
  readonly parent: number;
  readonly state: string;
  readonly name: string;
}

/** @param stat content of /proc/PID/stat */
export const parseProcessState = (pid: number, stat: string): ProcessState => {
  const { name, fields } = parseProcessStat(stat);
  const [state = '', parent] = fields;
  return { pid, parent: Number(parent), state, name };
};

const readProcesses = (): ProcessState[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        return [parseProcessState(Number(name), readFileSync(`/proc/${name}/stat`, 'utf8'))];
      } catch {
        return []; // it has ended meanwhile
      }
    });

/** All that a process has started and they in turn, without those of `except` and theirs. */
export const descendantsOf = (
  pid: number,
  all: readonly ProcessState[],
  except: ReadonlySet<number> = new Set(),
): ProcessState[] =>
  all
    .filter(({ parent, pid: child }) => parent === pid && !except.has(child))
    .flatMap((child) => [child, ...descendantsOf(child.pid, all, except)]);

/** Traced, stopped by their own spec, or ended. */
const RESTING = new Set(['T', 't', 'Z', 'X']);

/** They stop themselves when their child is stopped, and wait for whoever lets them go on (WUNTRACED). */
const FOLLOWERS = new Set(['nsenter', 'unshare']);

const signal = (pid: number, name: NodeJS.Signals): void => {
  try {
    process.kill(pid, name);
  } catch {
    // it has ended meanwhile
  }
};

/**
 * Interrupts what this process has started and starts later. A process that its spec stops while it is stopped here goes on too early.
 * @param except processes that are left alone, and what they started
 * @returns ends it, and tells how often a process was stopped
 */
export const startInterruptions = (except: ReadonlySet<number>): (() => Promise<number>) => {
  const ending = new AbortController();
  const interrupt = async (): Promise<number> => {
    let stops = 0;
    while (!ending.signal.aborted) {
      const all = descendantsOf(process.pid, readProcesses(), except);
      for (const { pid, name, state } of all) if (state === 'T' && FOLLOWERS.has(name)) signal(pid, 'SIGCONT');
      const running = all.filter(({ state }) => !RESTING.has(state));
      const chosen = running[Math.floor(Math.random() * running.length)];
      if (chosen !== undefined) {
        signal(chosen.pid, 'SIGSTOP');
        await delay(LEAST_STOP_MS + Math.random() ** 2 * (MOST_STOP_MS - LEAST_STOP_MS));
        signal(chosen.pid, 'SIGCONT');
        stops++;
      }
      await delay(Math.random() * MOST_PAUSE_MS);
    }
    return stops;
  };
  const interrupted = interrupt();
  return () => {
    ending.abort();
    return interrupted;
  };
};
