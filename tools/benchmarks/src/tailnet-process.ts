import { readFileSync } from 'node:fs';

/** What a process has used (proc(5)). */

const TICKS_PER_SECOND = 100; // USER_HZ, the same on every Linux
const KIB_PER_MIB = 1024;

const kibIn = (file: string, field: string): number =>
  Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync(file, 'utf8'))![1]);

export interface Memory {
  readonly rssMiB: number;
  /** Pages that others have too count by their share. */
  readonly pssMiB: number;
}

export const memoryOf = (pid: number): Memory => ({
  rssMiB: kibIn(`/proc/${pid}/status`, 'VmRSS') / KIB_PER_MIB,
  pssMiB: kibIn(`/proc/${pid}/smaps_rollup`, 'Pss') / KIB_PER_MIB,
});

/** Of the processor, all threads, in the process and for it in the kernel. */
export const secondsOf = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
};
