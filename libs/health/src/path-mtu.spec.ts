import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  BASE_MTU_BYTES,
  mtuAnswered,
  mtuLimit,
  mtuLost,
  type MtuSearch,
  raiseMtu,
  SMALLEST_MTU_BYTES,
  startMtuSearch,
} from './path-mtu.ts';

const FLOOR = SMALLEST_MTU_BYTES[4];

/** Probes until the search is settled over a path that carries so much; the number of probes too. */
const settleOver = (search: MtuSearch, pathBytes: number): { search: MtuSearch; probes: number } => {
  let probes = 0;
  let now = search;
  do {
    const size = now.candidateBytes;
    now = size <= pathBytes ? mtuAnswered(now, size) : mtuLost(now, size);
    probes++;
  } while (!now.isSettled && probes < 1000);
  return { search: now, probes };
};

test('a path as wide as its device is confirmed by one probe', () => {
  const { search, probes } = settleOver(startMtuSearch(1420, FLOOR), 9000);
  expect([search.foundBytes, mtuLimit(search), probes]).toEqual([1420, undefined, 1]);
});

test('the exact size of a narrower path is found, in few probes', () => {
  fc.assert(
    fc.property(fc.integer({ min: FLOOR, max: 8920 }), fc.integer({ min: FLOOR, max: 8920 }), (path, ceiling) => {
      const { search, probes } = settleOver(startMtuSearch(ceiling, FLOOR), path);
      return search.foundBytes === Math.min(path, ceiling) && probes <= 3 * 16;
    }),
  );
});

test('one lost probe of a settled size changes nothing, three are a black hole', () => {
  const { search } = settleOver(startMtuSearch(1420, FLOOR), 1420);
  const once = mtuAnswered(mtuLost(mtuLost(search, 1420), 1420), 1420);
  expect([once.isSettled, once.losses]).toEqual([true, 0]);
  const hole = [1, 2, 3].reduce((value) => mtuLost(value, 1420), search);
  expect([hole.isSettled, mtuLimit(hole)]).toEqual([false, undefined]);
  expect(mtuLimit(settleOver(hole, 1300).search)).toBe(1300);
});

test('a path that carries more again is found by looking upwards, and the old size holds meanwhile', () => {
  const narrow = settleOver(startMtuSearch(1420, FLOOR), 1300).search;
  const raised = raiseMtu(narrow);
  expect([raised.candidateBytes, mtuLimit(raised)]).toEqual([1420, 1300]);
  expect(mtuLimit(settleOver(raised, 1420).search)).toBeUndefined();
  expect(settleOver(raised, 1300).search.foundBytes).toBe(1300);
});

test('a path narrower than every size that is probed is taken to carry the smallest', () => {
  const { search } = settleOver(startMtuSearch(1420, FLOOR), 500);
  expect(search.foundBytes).toBe(FLOOR);
  expect(mtuLost(search, FLOOR)).toBe(search);
});

test('an answer to a size that is no candidate any more is ignored', () => {
  const search = startMtuSearch(1420, FLOOR);
  expect(mtuAnswered(search, 1300)).toBe(search);
  expect(mtuLost(search, 1300)).toBe(search);
});

test('what most narrow paths carry is tried before anything below it', () => {
  const lost = [1, 2, 3].reduce((value) => mtuLost(value, 1420), startMtuSearch(1420, FLOOR));
  expect(lost.candidateBytes).toBe(BASE_MTU_BYTES);
  const { passesBytes, lostBytes } = mtuAnswered(lost, BASE_MTU_BYTES);
  expect([passesBytes, lostBytes]).toEqual([BASE_MTU_BYTES, 1420]);
});

test.each([576, 500])('a device of %i bytes is settled from the start, and nothing larger is sent', (ceiling) => {
  const search = startMtuSearch(ceiling, FLOOR);
  expect([search.isSettled, search.candidateBytes, mtuLimit(search)]).toEqual([true, ceiling, undefined]);
  expect(mtuLost(search, ceiling)).toBe(search);
});
