import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { descendantsOf, parseProcessState, startInterruptions } from './interruptions.ts';

const stateOf = (pid: number): string => parseProcessState(pid, readFileSync(`/proc/${pid}/stat`, 'utf8')).state;

test('state and parent of a process are read behind its name, whatever that holds', () => {
  expect(parseProcessState(7, '7 (a) S (b) T 5 7 7 0')).toEqual({ pid: 7, parent: 5, state: 'T', name: 'a) S (b' });
});

test('descendants are children and theirs, without those that are left alone', () => {
  const all = [
    [2, 1],
    [3, 2],
    [4, 1],
    [5, 4],
    [6, 9],
  ].map(([pid, parent]) => ({ pid: pid!, parent: parent!, state: 'S', name: 'sh' }));
  expect(descendantsOf(1, all).map(({ pid }) => pid)).toEqual([2, 3, 4, 5]);
  expect(descendantsOf(1, all, new Set([4])).map(({ pid }) => pid)).toEqual([2, 3]);
});

test('a process is stopped some time and goes on, another is left alone, and none is stopped at the end', async () => {
  const [stopped, alone] = ['60', '61'].map((seconds) => spawn('sleep', [seconds]));
  try {
    const end = startInterruptions(new Set([alone!.pid!]));
    await expect.poll(() => stateOf(stopped!.pid!), { timeout: 10_000, interval: 1 }).toBe('T');
    expect(stateOf(alone!.pid!)).not.toBe('T');
    expect(await end()).toBeGreaterThan(0);
    expect(stateOf(stopped!.pid!)).not.toBe('T');
  } finally {
    for (const child of [stopped!, alone!]) child.kill('SIGKILL');
  }
});
