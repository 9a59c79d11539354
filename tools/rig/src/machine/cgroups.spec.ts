import { expect, test } from 'vitest';
import { realtimeOfNodeUs } from './cgroups.ts';

test.each([1, 7, 8, 9, 20, 97])(
  '%i nodes have no more real time together than the kernel lets the lab have',
  (nodes) => {
    expect(realtimeOfNodeUs(nodes)).toBeGreaterThan(0);
    expect(realtimeOfNodeUs(nodes) * nodes).toBeLessThanOrEqual(900_000);
  },
);
