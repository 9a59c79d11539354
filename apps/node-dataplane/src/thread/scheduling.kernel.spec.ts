import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { nodeCommand } from '@unbounded/config/node-command';
import { expect, test } from 'vitest';
import type { Scheduled } from './scheduling.ts';

/** As the kernel has it: proc(5), fields 19, 40 and 41 of stat. */
interface Seen extends Scheduled {
  readonly niceness: number;
  readonly priority: number;
  readonly policy: number;
}

const PROGRAM = `import { readFileSync } from 'node:fs';
const [file, wish, chrt] = process.argv.slice(1);
const { schedule } = await import(file);
const scheduled = schedule({ isRealtime: wish === 'realtime', niceness: -20 }, chrt);
const fields = readFileSync('/proc/thread-self/stat', 'utf8').split(') ')[1].split(' ');
console.log(JSON.stringify({ ...scheduled, niceness: Number(fields[16]), priority: Number(fields[37]), policy: Number(fields[38]) }));`;
const [SCHED_OTHER, SCHED_RR] = [0, 2];

/** @param capabilities all that it has */
const scheduleWith = (capabilities: string, wish: 'realtime' | 'niceness' = 'realtime', ...chrt: string[]): Seen => {
  const privileges = ['--no-new-privs', `--bounding-set=${capabilities}`, '--inh-caps=-all'];
  const program = [...nodeCommand, '--input-type=module', '--eval', PROGRAM];
  const args = [join(import.meta.dirname, 'scheduling.ts'), wish, ...chrt];
  return JSON.parse(execFileSync('setpriv', [...privileges, ...program, ...args], { encoding: 'utf8' })) as Seen;
};

test('with the one capability that the chart gives it a thread goes before all that is not real-time', () => {
  expect(scheduleWith('-all,+sys_nice')).toEqual({
    ...{ scheduling: 'realtime', niceness: 0, priority: 1, policy: SCHED_RR },
  });
});

test('where real-time scheduling is not to be had, it is niceness', () => {
  expect(scheduleWith('-all,+sys_nice', 'realtime', '/nonexistent/chrt')).toMatchObject({
    ...{ scheduling: 'niceness', niceness: -20, policy: SCHED_OTHER },
    error: expect.stringContaining('ENOENT') as string,
  });
});

test('without any privilege it says why', () => {
  const seen = scheduleWith('-all');
  expect(seen).toMatchObject({ scheduling: 'shared', niceness: 0, policy: SCHED_OTHER });
  expect(seen.error).toMatch(/Operation not permitted.*EACCES/s);
});

test('who does not ask for real-time scheduling gets niceness', () => {
  const seen = scheduleWith('-all,+sys_nice', 'niceness');
  expect(seen).toEqual({ scheduling: 'niceness', niceness: -20, priority: 0, policy: SCHED_OTHER });
});
