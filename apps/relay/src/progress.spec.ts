import type { Socket } from 'node:net';
import { expect, test } from 'vitest';

import { Progress } from './progress.ts';

/** A client to which 1 MB was written, and of which the kernel has taken so much at each second. */
const watch = (takenAt: (second: number) => number): number | undefined => {
  const handle = { writeQueueSize: 0 };
  const progress = new Progress({ _handle: handle } as unknown as Socket);
  progress.written = 1_000_000;
  for (let second = 0; second < 60; second++) {
    handle.writeQueueSize = progress.written - takenAt(second);
    if (progress.isStuck(false, second * 1000, 10_000)) return second;
  }
  return undefined;
};

test.each<[string, (second: number) => number, number | undefined]>([
  ['takes nothing', () => 0, 11],
  ['takes some bytes of each write', (second) => second * 100, 11],
  ['takes a long write steadily, though it is not done within the time', (second) => second * 5000, undefined],
  ['stops in the middle', (second) => Math.min(second, 20) * 5000, 29],
  [
    'takes everything in one go after nine seconds, again and again',
    (second) => Math.floor(second / 9) * 50_000,
    undefined,
  ],
])('a client that %s', (_what, takenAt, stuckAt) => expect(watch(takenAt)).toBe(stuckAt));

test('while nothing waits there is no progress to be made', () => {
  const progress = new Progress({ _handle: { writeQueueSize: 0 } } as unknown as Socket);
  for (let second = 0; second < 60; second++) expect(progress.isStuck(true, second * 1000, 10_000)).toBe(false);
  expect(progress.isStuck(false, 60_000, 10_000)).toBe(false);
});
