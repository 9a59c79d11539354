import { expect, test } from 'vitest';
import { createOutstanding, isNewer } from './replay.ts';

test.each([
  ['the first one', undefined, 5n, 1n, true],
  ['a later one', { nonce: 5n, sequence: 1n }, 5n, 2n, true],
  ['the same again', { nonce: 5n, sequence: 2n }, 5n, 2n, false],
  ['an earlier one', { nonce: 5n, sequence: 2n }, 5n, 1n, false],
  ['the first after a restart', { nonce: 5n, sequence: 900n }, 6n, 1n, true],
  ['one from before a restart', { nonce: 6n, sequence: 1n }, 5n, 901n, false],
])('a request is new or not: %s', (_name, seen, nonce, sequence, expected) => {
  expect(isNewer(seen, { nonce, sequence })).toBe(expected);
});

test('a reply counts once, and only for a request that was sent', () => {
  const outstanding = createOutstanding<string>();
  outstanding.add(1n, 'a');
  expect([outstanding.take(2n), outstanding.take(1n), outstanding.take(1n)]).toEqual([undefined, 'a', undefined]);
});

test('requests that nobody answers take no more room than the limit', () => {
  const outstanding = createOutstanding<number>(3);
  for (let sequence = 0; sequence < 100; sequence++) outstanding.add(BigInt(sequence), sequence);
  expect(outstanding.size).toBe(3);
  expect([outstanding.take(96n), outstanding.take(97n)]).toEqual([undefined, 97]);
});
