import { encodeData, FrameParser } from '@unbounded/relay-protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';

import { Lane } from './lane.ts';
import { Memory } from './memory.ts';

const frameOf = (index: number, size: number): Buffer => {
  const payload = Buffer.alloc(Math.max(4, size));
  payload.writeUInt32BE(index);
  return Buffer.from(encodeData(Buffer.alloc(32), payload));
};
const push = (lane: Lane, frame: Buffer, budget: number): number =>
  lane.push(frame, { start: 0, end: frame.length }, budget, 0);

/** Takes everything out: the frames' numbers. */
const empty = (lane: Lane, memory: Memory): number[] => {
  const got: number[] = [];
  for (let block = lane.take(); block !== undefined; block = lane.take()) {
    new FrameParser().push(block.bytes.subarray(block.from, block.to), (bytes, start) =>
      got.push(Buffer.from(bytes).readUInt32BE(start + 37)),
    );
    memory.held -= block.bytes.length;
    memory.give(block.bytes);
  }
  return got;
};

test('keeps the newest frames that fit the budget, in order, and counts the others as lost', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 4, max: 20_000 }), { maxLength: 60 }),
      fc.integer({ min: 70_000, max: 200_000 }),
      (sizes, budget) => {
        const memory = new Memory(1e9);
        const lane = new Lane(memory);
        let lost = 0;
        for (const [index, size] of sizes.entries()) {
          lost += push(lane, frameOf(index, size), budget);
          expect(lane.bytes).toBeLessThanOrEqual(budget);
        }
        const got = empty(lane, memory);
        expect(got).toEqual(sizes.map((_, index) => index).slice(lost));
        expect([memory.held, lane.bytes]).toEqual([0, 0]);
      },
    ),
    { numRuns: 200 },
  );
});

test('what it holds is at most its budget and three blocks', () => {
  const memory = new Memory(1e9);
  const lane = new Lane(memory);
  for (let index = 0; index < 5000; index++) {
    push(lane, frameOf(index, 1400), 512 * 1024);
    expect(memory.held).toBeLessThanOrEqual(512 * 1024 + 3 * 65_605);
  }
  lane.clear();
  expect(memory.held).toBe(0);
});

test('without memory for another block the new frame is lost and the old ones stay', () => {
  const memory = new Memory(20_000);
  const lane = new Lane(memory);
  const lost = Array.from({ length: 20 }, (_, index) => push(lane, frameOf(index, 1400), 1e6));
  expect(lost.reduce((sum, each) => sum + each, 0)).toBe(9);
  expect(empty(lane, memory)).toEqual(Array.from({ length: 11 }, (_, index) => index));
});
