import { expect, test } from 'vitest';
import { parseBusySeconds } from './processor-time.ts';

test('of the kinds of time in /proc/stat those count in which a processor works for this machine', () => {
  const stat = 'cpu  100 20 300 50000 7000 4 50 900 60 0\ncpu0 1 1 1 1 1 1 1 1 1 1\nintr 12345\n';
  expect(parseBusySeconds(stat)).toBe((100 + 20 + 300 + 4 + 50) / 100);
});
