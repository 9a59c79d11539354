import { expect, test } from 'vitest';
import { dropsSince } from './drops.ts';

test('what was dropped since then is said, and nothing else', () => {
  const before = new Map([['s1-w1 eth0', 3]]);
  const now = new Map([
    ['s1-w1 eth0', 3],
    ['s1-w1 UdpRcvbufErrors', 2],
  ]);
  expect([dropsSince(before, now), dropsSince(now, now)]).toEqual(['s1-w1 UdpRcvbufErrors: 2', 'nothing']);
});
