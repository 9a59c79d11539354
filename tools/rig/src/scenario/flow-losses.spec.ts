import { expect, test } from 'vitest';
import { lostMsAfter } from './flow-losses.ts';

const startedUnixMillis = 1_700_000_000_000;
const loss = (atMillis: number, count: number) => ({ atMillis, firstNumber: 0, lastNumber: count - 1 });
const after = (losses: ReturnType<typeof loss>[], moments: readonly number[]): number[] =>
  lostMsAfter(
    { losses, startedUnixMillis },
    moments.map((at) => startedUnixMillis + at),
    100,
  );

test('losses count for the moment before them, with what was in flight at that moment, all of them together', () => {
  expect(after([loss(990, 30), loss(1400, 2), loss(3500, 1)], [1000, 3000])).toEqual([320, 10]);
});

test('nothing lost is no time, and what was lost before the first moment is none of its', () => {
  expect(after([], [1000, 3000])).toEqual([0, 0]);
  expect(after([loss(900, 5)], [1000])).toEqual([0]);
});
