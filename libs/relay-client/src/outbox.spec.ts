import { decodeMessage, encodeKeepalive, FrameParser } from '@unbounded/relay-protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';

import { Outbox } from './outbox.ts';
import { newTallies } from './tallies.ts';
import { FakeClock } from './test/fake-clock.ts';
import { keyOf } from './test/test-client.ts';

/** A socket of which the kernel takes nothing until the test says so. */
const setUp = (budgetBytes: number, isSlow = true) => {
  const written: Buffer[] = [];
  const waiting: { readonly bytes: number; readonly done: () => void }[] = [];
  const wire = {
    writableLength: 0,
    isSlow,
    write: (bytes: Uint8Array, done: () => void) => {
      written.push(Buffer.from(bytes));
      if (!wire.isSlow) {
        process.nextTick(done);
        return;
      }
      wire.writableLength += bytes.length;
      waiting.push({ bytes: bytes.length, done });
    },
    /** The kernel takes what has been written. */
    take: () => {
      for (const { bytes, done } of waiting.splice(0)) {
        wire.writableLength -= bytes;
        done();
      }
    },
  };
  const tallies = newTallies();
  const clock = new FakeClock();
  const outbox = new Outbox({ wire, budgetBytes, tallies, clock });
  const payloads = (): Buffer[] => {
    const all: Buffer[] = [];
    new FrameParser().push(Buffer.concat(written), (bytes, start, end) => {
      const message = decodeMessage(bytes.subarray(start, end));
      all.push(message.kind === 'data' ? Buffer.from(message.payload) : Buffer.from(message.kind));
    });
    return all;
  };
  return { outbox, wire, tallies, clock, written, payloads };
};
const packet = (type: number, number: number, size = 1400): Buffer => {
  const payload = Buffer.alloc(size, type);
  payload.writeUInt32BE(number, 4);
  return payload;
};
const numbers = (payloads: readonly Buffer[]): number[] => payloads.map((payload) => payload.readUInt32BE(4));

test('what is sent in one turn is one write', async () => {
  const { outbox, written, payloads } = setUp(65_536, false);
  for (let number = 0; number < 20; number++) outbox.sendData(keyOf('b'), packet(4, number));
  await new Promise((resolve) => setImmediate(resolve));
  expect(written).toHaveLength(1);
  expect(numbers(payloads())).toEqual(Array.from({ length: 20 }, (_, number) => number));
});

test('more than one batch is written at once, and the batch is used again without mixing frames', async () => {
  const { outbox, written, payloads } = setUp(65_536, false);
  for (let number = 0; number < 200; number++) outbox.sendData(keyOf('b'), packet(4, number));
  await new Promise((resolve) => setImmediate(resolve));
  expect(written.every(({ length }) => length <= 65_536)).toBe(true);
  expect(numbers(payloads())).toEqual(Array.from({ length: 200 }, (_, number) => number));
});

test('of what a relay does not take the oldest go, handshakes stay and go first', () => {
  const { outbox, wire, tallies, payloads } = setUp(20 * 1437);
  outbox.sendData(keyOf('b'), packet(4, 0));
  outbox.flush();
  for (let number = 1; number <= 100; number++) {
    outbox.sendData(keyOf('b'), packet(4, number));
    if (number % 10 === 0) outbox.sendData(keyOf('b'), packet(1 + ((number / 10) % 3), 1000 + number, 148));
  }
  expect(tallies.dropped.slowRelay).toBe(80);
  expect(outbox.queued).toBe(21 * 1437 + 10 * 185);
  wire.take();
  wire.take();
  const expected = [
    0,
    ...Array.from({ length: 10 }, (_, n) => 1010 + 10 * n),
    ...Array.from({ length: 20 }, (_, n) => 81 + n),
  ];
  expect(numbers(payloads())).toEqual(expected);
});

test('what asks whether all has been taken goes after all of it', () => {
  const { outbox, wire, payloads } = setUp(65_536);
  outbox.sendData(keyOf('b'), packet(4, 0));
  outbox.flush();
  outbox.sendData(keyOf('b'), packet(4, 1));
  outbox.sendControl(encodeKeepalive(), true);
  outbox.sendData(keyOf('b'), packet(1, 2));
  wire.take();
  expect(payloads().map((payload) => payload[0])).toEqual([4, 1, 4, 'keepalive'.charCodeAt(0)]);
});

test('a flood of handshakes stays within its room', () => {
  const { outbox, tallies } = setUp(65_536);
  outbox.sendData(keyOf('b'), packet(4, 0));
  outbox.flush();
  for (let number = 0; number < 10_000; number++) outbox.sendData(keyOf('b'), packet(1, number, 148));
  expect(outbox.queued).toBeLessThanOrEqual(1437 + 32 * 1024);
  expect(tallies.dropped.slowRelay).toBeGreaterThan(9000);
});

test('since when a write waits is known, until the kernel has taken it', () => {
  const { outbox, wire, clock } = setUp(65_536);
  clock.pass(5);
  outbox.sendControl(encodeKeepalive());
  outbox.flush();
  expect(outbox.writingSince).toBe(5);
  wire.take();
  expect(outbox.writingSince).toBeUndefined();
});

test('whatever is sent and taken when: what comes out is whole, each lane in order, and never beyond the budget', async () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ type: fc.constantFrom(1, 4), size: fc.integer({ min: 8, max: 9000 }) }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant(4), size: fc.constantFrom(65_499, 65_503) }) },
    { weight: 3, arbitrary: fc.constantFrom('take', 'flush', 'fast', 'slow') },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
      const { outbox, wire, tallies, payloads } = setUp(100_000);
      steps.forEach((what, number) => {
        if (what === 'take') wire.take();
        else if (what === 'flush') outbox.flush();
        else if (typeof what === 'string') wire.isSlow = what === 'slow';
        else outbox.sendData(keyOf('b'), packet(what.type, number, what.size));
        expect(outbox.queued).toBeLessThanOrEqual(100_000 + 32 * 1024 + 2 * 65_540);
      });
      for (let round = 0; round < 20; round++) {
        outbox.flush();
        wire.take();
      }
      const came = payloads();
      const sent = steps.filter((what) => typeof what === 'object').length;
      expect(came.length).toBe(sent - tallies.dropped.slowRelay);
      for (const type of [1, 4]) {
        const lane = numbers(came.filter((payload) => payload[0] === type));
        expect(lane).toEqual(lane.toSorted((a, b) => a - b));
      }
      outbox.close();
    }),
    { numRuns: 200 },
  );
});
