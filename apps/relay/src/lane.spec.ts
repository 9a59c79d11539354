import { encodeData, FrameParser } from '@unbounded/relay-protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';

import { Lane } from './lane.ts';
import { type Holder, Memory } from './memory.ts';

const nobody = (weight = 1): Holder => ({ held: 0, weight, canShed: false, shed: () => {} });

/** A lane that gives up its oldest block when it is to. */
const openLane = (memory: Memory, onLost: (frames: number) => void): Lane => {
  const holder: Holder = {
    held: 0,
    weight: 512 * 1024,
    get canShed(): boolean {
      return !lane.isEmpty;
    },
    shed: () => onLost(lane.shed()),
  };
  const lane = new Lane(memory, holder);
  return lane;
};

const frameOf = (index: number, size: number): Buffer => {
  const payload = Buffer.alloc(Math.max(4, size));
  payload.writeUInt32BE(index);
  return Buffer.from(encodeData(Buffer.alloc(32), payload));
};
const push = (lane: Lane, frame: Buffer, budget: number): number =>
  lane.push(frame, { start: 0, end: frame.length }, budget, 0);

/** Takes everything out: the frames' numbers. */
const empty = (lane: Lane, memory: Memory, holder: Holder): number[] => {
  const got: number[] = [];
  for (let block = lane.take(); block !== undefined; block = lane.take()) {
    new FrameParser().push(block.bytes.subarray(block.from, block.to), (bytes, start) =>
      got.push(Buffer.from(bytes).readUInt32BE(start + 37)),
    );
    memory.release(holder, block.bytes);
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
        const holder = nobody();
        const lane = new Lane(memory, holder);
        let lost = 0;
        for (const [index, size] of sizes.entries()) {
          lost += push(lane, frameOf(index, size), budget);
          expect(lane.bytes).toBeLessThanOrEqual(budget);
        }
        const got = empty(lane, memory, holder);
        expect(got).toEqual(sizes.map((_, index) => index).slice(lost));
        expect([memory.held, holder.held, lane.bytes]).toEqual([0, 0, 0]);
      },
    ),
    { numRuns: 200 },
  );
});

test('what it holds is at most its budget and three blocks', () => {
  const memory = new Memory(1e9);
  const lane = new Lane(memory, nobody());
  for (let index = 0; index < 5000; index++) {
    push(lane, frameOf(index, 1400), 512 * 1024);
    expect(memory.held).toBeLessThanOrEqual(512 * 1024 + 3 * 65_605);
  }
  lane.clear();
  expect(memory.held).toBe(0);
});

test('without memory for another block the new frame is lost and the old ones stay', () => {
  const memory = new Memory(20_000);
  const holder = nobody();
  const lane = new Lane(memory, holder);
  const lost = Array.from({ length: 20 }, (_, index) => push(lane, frameOf(index, 1400), 1e6));
  expect(lost.reduce((sum, each) => sum + each, 0)).toBe(9);
  expect(empty(lane, memory, holder)).toEqual(Array.from({ length: 11 }, (_, index) => index));
});

test('without memory whoever holds the most gives up its oldest block, and nobody else loses anything', () => {
  const memory = new Memory(1_000_000);
  const lost = new Map<string, number>();
  const open = (name: string): Lane => openLane(memory, (frames) => lost.set(name, (lost.get(name) ?? 0) + frames));
  const greedy = Array.from({ length: 8 }, (_, index) => open(`greedy ${index}`));
  for (let index = 0; index < 300; index++) for (const lane of greedy) push(lane, frameOf(index, 1400), 512 * 1024);
  expect(memory.held).toBeGreaterThan(900_000);
  const modest = open('modest');
  for (let index = 0; index < 30; index++) expect(push(modest, frameOf(index, 1400), 512 * 1024)).toBe(0);
  expect(lost.get('modest')).toBeUndefined();
  expect(memory.held).toBeLessThanOrEqual(1_000_000 + 65_605);
  for (const lane of [...greedy, modest]) lane.clear();
  expect(memory.held).toBe(0);
});

test('writes that the kernel has not taken make room for themselves: who queues little after them loses nothing', () => {
  const memory = new Memory(2_000_000);
  const greedy = Array.from({ length: 8 }, () => openLane(memory, () => {}));
  for (let index = 0; index < 300; index++) for (const lane of greedy) push(lane, frameOf(index, 1400), 512 * 1024);
  const writing = Array.from({ length: 40 }, () => ({ holder: nobody(512 * 1024), buffer: memory.take(1400) }));
  for (const { holder, buffer } of writing) memory.pin(holder, buffer);
  expect(memory.held).toBeLessThanOrEqual(memory.limit);
  const modest = openLane(memory, () => {});
  expect(push(modest, frameOf(0, 1400), 512 * 1024)).toBe(0);
  for (const lane of [...greedy, modest]) lane.clear();
  for (const { holder, buffer } of writing) memory.release(holder, buffer);
  expect(memory.held).toBe(0);
});
