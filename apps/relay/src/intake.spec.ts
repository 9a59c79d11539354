import { BlockPool, encodeData } from '@unbounded/relay-protocol';
import { expect, test } from 'vitest';

import { Intake } from './intake.ts';
import { HEADROOM, ReadSlab } from './memory.ts';

test('a frame in pieces is whole again in the read buffer, and one that never ends is noticed', () => {
  const slab = new ReadSlab();
  const intake = new Intake(slab, new BlockPool());
  const frame = encodeData(new Uint8Array(32), new Uint8Array(5000).fill(4));
  const read = (from: number, to: number): number => {
    slab.target.set(frame.subarray(from, to));
    return intake.open(to - from);
  };
  expect(read(0, 1000)).toBe(HEADROOM);
  intake.keep(HEADROOM, HEADROOM + 1000, 5000);
  expect(read(1000, 2000)).toBe(-1);
  expect(intake.hasWaitedTooLong(34_000)).toBe(false);
  expect(intake.hasWaitedTooLong(36_000)).toBe(true);
  const start = read(2000, frame.length);
  expect(start).toBe(HEADROOM - 2000);
  expect(slab.bytes.subarray(start, start + frame.length).equals(frame)).toBe(true);
  expect(intake.hasWaitedTooLong(99_000)).toBe(false);
});
