import { encodeFrame } from '@unbounded/relay-protocol';
import fc from 'fast-check';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';

import { Session, type SessionEnd } from './session.ts';
import { newTallies } from './tallies.ts';
import { FakeClock } from './test/fake-clock.ts';
import { local, newKeys } from './test/test-client.ts';

const identity = newKeys();

/** A session whose relay says what the test says. */
const setUp = () => {
  const socket = new Socket();
  socket.write = () => true;
  const ends: SessionEnd[] = [];
  const clock = new FakeClock();
  const options = { identity, dial: () => socket, clock, tallies: newTallies(), budgetBytes: 65_536 };
  const session = new Session(local(1), options, {
    onUsable: () => {},
    onChange: () => {},
    onEnd: (_session, end) => ends.push(end),
    onData: () => {},
    onPeerGone: () => {},
    onHealth: () => {},
    onDrain: () => {},
  });
  socket.emit('connect');
  return { session, socket, ends, clock };
};

/** The bytes in pieces, cut at any places. */
const pieces = (bytes: Uint8Array, cuts: readonly number[]): Buffer[] => {
  const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return at.slice(1).map((end, index) => Buffer.from(bytes.subarray(at[index], end)));
};

const frame = fc
  .tuple(
    fc.oneof(fc.constantFrom(1, 2, 3, 0xff), fc.integer({ min: 0x40, max: 0x4a })),
    fc.uint8Array({ maxLength: 200 }),
  )
  .map(([type, body]) => Buffer.from(encodeFrame(type, body)));
const stream = fc.oneof(
  fc.uint8Array({ maxLength: 400 }),
  fc.array(frame, { maxLength: 12 }).map((frames) => new Uint8Array(Buffer.concat(frames))),
);

test('whatever a relay says, and however it comes in pieces: at worst the session ends, once, and says why', () => {
  fc.assert(
    fc.property(stream, fc.array(fc.nat(), { maxLength: 6 }), (bytes, cuts) => {
      const { session, socket, ends, clock } = setUp();
      for (const piece of pieces(bytes, cuts)) socket.emit('data', piece);
      expect(ends.length).toBeLessThanOrEqual(1);
      for (const { reason } of ends) expect(['malformed', 'unproven']).toContain(reason);
      session.end('stopped', 'the test is over');
      socket.emit('data', Buffer.from(bytes));
      expect([ends.length, clock.pending]).toEqual([1, []]);
    }),
    { numRuns: 500 },
  );
});
