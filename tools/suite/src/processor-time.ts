import { readFileSync } from 'node:fs';
import { parseProcessStat } from './process-stat.ts';

/** Clock ticks in which proc(5) counts; USER_HZ is 100 on every architecture that we run on. */
const TICKS_PER_SECOND = 100;
/** Places of cutime and cstime among the fields. */
const CHILDREN_USER = 13;
const CHILDREN_SYSTEM = 14;

/** @param stat content of /proc/PID/stat */
export const parseChildrenSeconds = (stat: string): number => {
  const { fields } = parseProcessStat(stat);
  return (Number(fields[CHILDREN_USER]) + Number(fields[CHILDREN_SYSTEM])) / TICKS_PER_SECOND;
};

/**
 * Processor time of all processes that this one started and that have ended, with theirs. What ran in a PID namespace counts when its
 * first process ends, daemons included: the kernel reaps them for it.
 */
export const childrenSeconds = (): number => parseChildrenSeconds(readFileSync('/proc/self/stat', 'utf8'));
