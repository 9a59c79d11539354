import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { AGENT_V8_OPTIONS, nodeCommand, V8_OPTIONS } from '@unbounded/config/node-command';
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
const { endRealtime, schedule } = await import(file);
if (wish === 'limited') {
  schedule({ isRealtime: true, niceness: -20 });
  endRealtime();
}
const scheduled = schedule({ isRealtime: wish === 'realtime', niceness: -20 }, chrt);
const fields = readFileSync('/proc/thread-self/stat', 'utf8').split(') ')[1].split(' ');
console.log(JSON.stringify({ ...scheduled, niceness: Number(fields[16]), priority: Number(fields[37]), policy: Number(fields[38]) }));`;
const [SCHED_OTHER, SCHED_RR] = [0, 2];

interface Start {
  readonly wish?: 'realtime' | 'niceness' | 'limited';
  readonly chrt?: readonly string[];
  readonly options?: readonly string[];
}

/** @param capabilities all that it has */
const scheduleWith = (
  capabilities: string,
  { wish = 'realtime', chrt = [], options = AGENT_V8_OPTIONS }: Start = {},
): Seen => {
  const privileges = ['--no-new-privs', `--bounding-set=${capabilities}`, '--inh-caps=-all'];
  const program = [nodeCommand[0], ...options, '--input-type=module', '--eval', PROGRAM];
  const args = [join(import.meta.dirname, 'scheduling.ts'), wish, ...chrt];
  return JSON.parse(execFileSync('setpriv', [...privileges, ...program, ...args], { encoding: 'utf8' })) as Seen;
};

test('with the one capability that the chart gives it a thread goes before all that is not real-time', () => {
  expect(scheduleWith('-all,+sys_nice')).toEqual({
    ...{ scheduling: 'realtime', niceness: 0, priority: 1, policy: SCHED_RR },
  });
});

test('where real-time scheduling is not to be had, it is niceness', () => {
  expect(scheduleWith('-all,+sys_nice', { chrt: ['/nonexistent/chrt'] })).toMatchObject({
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
  const seen = scheduleWith('-all,+sys_nice', { wish: 'niceness' });
  expect(seen).toEqual({ scheduling: 'niceness', niceness: -20, priority: 0, policy: SCHED_OTHER });
});

test('a thread that was real-time and took too much gets niceness alone', () => {
  const seen = scheduleWith('-all,+sys_nice', { wish: 'limited' });
  expect(seen).toEqual({ scheduling: 'niceness', niceness: -20, priority: 0, policy: SCHED_OTHER });
});

test('where collections of garbage would wait for threads of normal priority, it is niceness', () => {
  expect(scheduleWith('-all,+sys_nice', { options: V8_OPTIONS })).toMatchObject({
    ...{ scheduling: 'niceness', niceness: -20, policy: SCHED_OTHER },
    error: 'node was started without --single-threaded-gc',
  });
});

/** Collects its garbage thirty times in a thread, and tells how often V8's own threads ran meanwhile: context switches of proc_pid_status(5). */
const COLLECT = `
const { Worker } = require('node:worker_threads');
const inThread = () => {
  const { readdirSync, readFileSync } = require('node:fs');
  const read = (task, file) => readFileSync('/proc/self/task/' + task + '/' + file, 'utf8');
  const runs = () =>
    readdirSync('/proc/self/task')
      .filter((task) => read(task, 'comm').trim() === 'V8Worker')
      .map((task) => Number(/^voluntary_ctxt_switches:\\s*(.*)$/m.exec(read(task, 'status'))[1]))
      .reduce((sum, one) => sum + one, 0);
  let collections = 0;
  new (require('node:perf_hooks').PerformanceObserver)((list) => (collections += list.getEntries().length)).observe({ entryTypes: ['gc'] });
  const kept = [];
  let allocated = 0;
  const before = runs();
  const allocate = () => {
    for (let index = 0; index < 10_000; index++) kept[allocated++ % 50_000] = { index, map: new Map([[index, [index]]]) };
    if (collections < 30) return setImmediate(allocate);
    console.log(JSON.stringify({ runs: runs() - before, collections }));
    process.exit();
  };
  allocate();
};
new Worker('(' + inThread + ')()', { eval: true });`;

test('with the options of the agent a thread collects its garbage alone: V8 has no thread that it would wait for', () => {
  const runsOfV8With = (options: readonly string[]): number => {
    const output = execFileSync(nodeCommand[0], [...options, '--eval', COLLECT], { encoding: 'utf8' });
    const { runs, collections } = JSON.parse(output) as { readonly runs: number; readonly collections: number };
    expect(collections).toBeGreaterThanOrEqual(30);
    return runs;
  };
  // What is left (some 30) are compilers, for which a collection does not spin; with collectors there are some 300.
  expect(runsOfV8With(AGENT_V8_OPTIONS)).toBeLessThan(100);
  expect(runsOfV8With(V8_OPTIONS)).toBeGreaterThan(100);
});
