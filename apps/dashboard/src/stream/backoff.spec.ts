import fc from 'fast-check';
import { expect, test } from 'vitest';
import { backoffMs } from './backoff.ts';

test('the wait doubles up to half a minute', () => {
  expect([0, 1, 2, 3, 5, 6, 7, 100].map((attempt) => backoffMs(attempt, 1))).toEqual([
    500, 1000, 2000, 4000, 16_000, 30_000, 30_000, 30_000,
  ]);
});

test('half of the wait is by chance, and it is never nothing', () => {
  fc.assert(
    fc.property(fc.nat(1e6), fc.double({ min: 0, max: 1, noNaN: true }), (attempt, random) => {
      const wait = backoffMs(attempt, random);
      const most = backoffMs(attempt, 1);
      expect(wait).toBeGreaterThanOrEqual(most / 2);
      expect(wait).toBeLessThanOrEqual(most);
    }),
  );
});
