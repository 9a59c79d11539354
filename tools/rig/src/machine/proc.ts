import { readFileSync } from 'node:fs';

/**
 * Start time of a process in clock ticks since boot (proc(5), field 22 of stat): tells a process from a later one of
 * the same pid. Undefined when it is gone or only waits to be reaped.
 */
export const startTime = (pid: number): string | undefined => {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    return fields[0] === 'Z' ? undefined : fields[19];
  } catch {
    return undefined;
  }
};
