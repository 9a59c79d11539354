import { execFileSync } from 'node:child_process';
import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';
import { basename } from 'node:path';
import { REALTIME_V8_OPTION } from '@unbounded/config/node-command';

/**
 * How soon the calling thread gets a processor. Niceness counts among the threads of one control group alone: a busy pod beside the agent's
 * takes its share all the same, and so does the rest of the agent. Real-time scheduling (sched(7), SCHED_RR) goes before all of these,
 * whatever the groups weigh. So it must not wait for threads of normal priority, as V8's are, nor take a processor for itself
 * (realtime-share.ts).
 */

export type Scheduling = 'realtime' | 'niceness' | 'shared';

export interface Wish {
  /** Real-time, at the lowest of its priorities, where that is allowed. */
  readonly isRealtime?: boolean;
  /** Otherwise, and where it is not allowed. */
  readonly niceness: number;
}

export interface Scheduled {
  readonly scheduling: Scheduling;
  /** Why it is not as wished. */
  readonly error?: string;
}

const CHRT = '/usr/bin/chrt';
const LOWEST_PRIORITY = '1';

const threadId = (): string => basename(readlinkSync('/proc/thread-self'));

const attempt = (action: () => void): string | undefined => {
  try {
    action();
    return undefined;
  } catch (error) {
    const { stderr, message } = error as Error & { readonly stderr?: Buffer };
    return stderr?.toString().trim() || message;
  }
};

/** @throws Error why the thread cannot be real-time */
const setRealtime = (chrt: string): void => {
  if (!process.execArgv.includes(REALTIME_V8_OPTION)) throw new Error(`node was started without ${REALTIME_V8_OPTION}`);
  execFileSync(chrt, ['--rr', '--pid', LOWEST_PRIORITY, threadId()], { stdio: 'pipe' });
};

/** Needs CAP_SYS_NICE; kernels with RT_GROUP_SCHED also a budget of the control group. @param chrt its program */
export const schedule = ({ isRealtime = false, niceness }: Wish, chrt = CHRT): Scheduled => {
  const refused = isRealtime ? attempt(() => setRealtime(chrt)) : '';
  if (refused === undefined) return { scheduling: 'realtime' };
  // Of the calling thread alone, on Linux.
  const alsoRefused = attempt(() => setPriority(0, niceness));
  if (alsoRefused === undefined) return { scheduling: 'niceness', ...(refused && { error: refused }) };
  return { scheduling: 'shared', error: [refused, alsoRefused].filter(Boolean).join('; ') };
};

/** Takes the real-time scheduling back. @throws Error when chrt fails */
export const endRealtime = (chrt = CHRT): void => {
  execFileSync(chrt, ['--other', '--pid', '0', threadId()], { stdio: 'pipe' });
};
