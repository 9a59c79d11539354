import { readFileSync } from 'node:fs';

/** Clock ticks in which proc(5) counts; USER_HZ is 100 on every architecture that we run on. */
const TICKS_PER_SECOND = 100;
/** Places of user, nice, system, irq and softirq in /proc/stat; the others are idle, iowait, steal, and guests, which are in user. */
const BUSY = [0, 1, 2, 5, 6] as const;

/** @param stat content of /proc/stat */
export const parseBusySeconds = (stat: string): number => {
  const ticks = /^cpu +(.*)$/m.exec(stat)![1]!.split(' ').map(Number);
  return BUSY.reduce<number>((sum, place) => sum + ticks[place]!, 0) / TICKS_PER_SECOND;
};

/**
 * Processor time that this machine has used since it started. That of our own processes would be less than they use: a lab's daemons end
 * with namespaces that nobody waits for.
 */
export const busySeconds = (): number => parseBusySeconds(readFileSync('/proc/stat', 'utf8'));
