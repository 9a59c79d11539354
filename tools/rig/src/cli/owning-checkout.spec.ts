import { expect, test } from 'vitest';
import { describeOrigin, foreignWarning } from './owning-checkout.ts';

const origin = { checkout: '/home/a/unbounded', since: '2026-01-02T03:04:05.678Z' };

test('the lab of another checkout is told of in one line, the own one is not', () => {
  expect(foreignWarning(origin, '/home/b/unbounded')).toBe(
    'note: this is the lab of /home/a/unbounded, up since 2026-01-02 03:04 UTC; what runs in it is of that checkout, not of this one',
  );
  expect(foreignWarning(origin, '/home/a/unbounded')).toBeUndefined();
  expect(foreignWarning(undefined)).toBeUndefined();
  expect(describeOrigin(undefined)).toBe('lab that a test made');
});
