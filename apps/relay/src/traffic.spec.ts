import { encodeData, encodeKeepalive, encodeRegister, MAX_PAYLOAD_BYTES } from '@unbounded/relay-protocol';
import { expect, test } from 'vitest';

import { dial, join, keyOf, type TestPeer } from '@unbounded/relay-testing/peer';
import { startRelay } from './test/test-relay.ts';

/** What a client that knows only the document sees: every message type, and nothing else. */
const payloadOf = (index: number, size = 40): Buffer => {
  const payload = Buffer.alloc(size, 4);
  payload.writeUInt32BE(index, 4);
  return payload;
};
const indexes = (peer: TestPeer): number[] => peer.frames.map((frame) => frame.readUInt32BE(41));

test('Register, Data and Keepalive, with every byte in a packet of its own', async () => {
  await using relay = await startRelay();
  using receiver = await join(relay.port, keyOf('receiver'));
  using sender = await dial(relay.port);
  const stream = Buffer.concat([
    encodeRegister(keyOf('sender')),
    encodeKeepalive(),
    encodeData(keyOf('receiver'), payloadOf(1)),
    encodeData(keyOf('receiver'), Buffer.alloc(0)),
    encodeKeepalive(),
    encodeData(keyOf('receiver'), payloadOf(2)),
  ]);
  for (const byte of stream) await new Promise((resolve) => sender.socket.write(Buffer.of(byte), resolve));
  await receiver.until('three frames', () => receiver.frames.length === 3);
  expect(receiver.frames[1]).toHaveLength(37);
  expect(await receiver.next()).toMatchObject({ key: keyOf('sender'), payload: payloadOf(1) });
  expect(sender.bytes).toBe(0);
});

test('a stream of frames for two receivers, cut once at every place, comes out whole and in order', async () => {
  await using relay = await startRelay();
  using a = await join(relay.port, keyOf('a'));
  using b = await join(relay.port, keyOf('b'));
  using sender = await join(relay.port, keyOf('sender'));
  const frames = [keyOf('a'), keyOf('a'), keyOf('b'), keyOf('a'), keyOf('nobody'), keyOf('b')];
  const stream = Buffer.concat(frames.map((key, index) => encodeData(key, payloadOf(index, 9 + 8 * index))));
  for (let at = 0; at <= stream.length; at += 1) {
    await new Promise((resolve) => sender.socket.write(stream.subarray(0, at), resolve));
    await new Promise((resolve) => setImmediate(resolve));
    sender.socket.write(stream.subarray(at));
    await a.until(`three for a, cut at ${at}`, () => a.frames.length === 3);
    await b.until(`two for b, cut at ${at}`, () => b.frames.length === 2);
    expect([indexes(a), indexes(b)]).toEqual([
      [0, 1, 3],
      [2, 5],
    ]);
    a.frames.length = b.frames.length = 0;
  }
});

test('the longest frames, in one write and one after the other', async () => {
  await using relay = await startRelay({ queueBytes: 4 * 1024 * 1024 });
  using receiver = await join(relay.port, keyOf('receiver'));
  using sender = await join(relay.port, keyOf('sender'));
  const frames = Array.from({ length: 20 }, (_, index) =>
    encodeData(keyOf('receiver'), payloadOf(index, MAX_PAYLOAD_BYTES)),
  );
  sender.send(...frames);
  await receiver.until('all', () => receiver.frames.length === 20);
  expect(indexes(receiver)).toEqual(frames.map((_, index) => index));
  expect(receiver.frames[7]!.subarray(5, 37)).toEqual(keyOf('sender'));
});

test('a burst of 5,000 frames of 1,200 bytes: at least 99 % arrive, in order', async () => {
  await using relay = await startRelay();
  using receiver = await join(relay.port, keyOf('receiver'));
  using sender = await join(relay.port, keyOf('sender'));
  sender.send(...Array.from({ length: 5000 }, (_, index) => encodeData(keyOf('receiver'), payloadOf(index, 1200))));
  sender.send(encodeData(keyOf('sender'), payloadOf(0)));
  await sender.next();
  await receiver.until('99 %', () => receiver.frames.length >= 4950);
  const got = indexes(receiver);
  expect(got).toEqual(got.toSorted((x, y) => x - y));
});

test('20 senders with 200 frames each to one receiver: none is lost', async () => {
  await using relay = await startRelay();
  using receiver = await join(relay.port, keyOf('receiver'));
  const senders = await Promise.all(Array.from({ length: 20 }, (_, index) => join(relay.port, keyOf(`s${index}`))));
  for (const sender of senders)
    sender.send(...Array.from({ length: 200 }, (_, index) => encodeData(keyOf('receiver'), payloadOf(index, 1200))));
  await receiver.until('all 4,000', () => receiver.frames.length === 4000);
  for (const [index, sender] of senders.entries()) {
    const its = receiver.frames.filter((frame) => frame.subarray(5, 37).equals(keyOf(`s${index}`)));
    expect(its.map((frame) => frame.readUInt32BE(41))).toEqual(Array.from({ length: 200 }, (_, i) => i));
    sender.socket.destroy();
  }
});

test('a client that does not read costs others nothing, holds a bounded memory, keeps its handshakes, and is ended', async () => {
  const queueBytes = 512 * 1024;
  await using relay = await startRelay({ queueBytes, writeTimeoutMs: 2000 });
  using slow = await join(relay.port, keyOf('slow'));
  using reader = await join(relay.port, keyOf('reader'));
  using sender = await join(relay.port, keyOf('sender'));
  using other = await join(relay.port, keyOf('other'));
  slow.socket.pause();
  let most = 0;
  const toSlow = Buffer.concat(
    Array.from({ length: 50 }, (_, index) => encodeData(keyOf('slow'), payloadOf(index, 1400))),
  );
  const flood = setInterval(() => {
    most = Math.max(most, relay.state.heldBytes);
    if (sender.socket.writableLength < 4_000_000) for (let count = 0; count < 20; count++) sender.socket.write(toSlow);
  }, 5);
  try {
    await reader.until(
      'the queue of the slow one overflows',
      () => {
        other.send(encodeData(keyOf('reader'), payloadOf(0)));
        return relay.state.tallies.dropped.slow > 1000;
      },
      15_000,
    );
    // Others, and the flooding sender's frames to others, still come through, one round trip after the other.
    const handshake = encodeData(keyOf('slow'), Buffer.concat([Buffer.of(1), Buffer.alloc(147)]));
    other.send(handshake);
    const roundTripsMs: number[] = [];
    for (let count = 0; count < 50; count++) {
      reader.frames.length = 0;
      const start = performance.now();
      other.send(encodeData(keyOf('reader'), payloadOf(count)));
      await reader.until('an echo', () => reader.frames.length > 0);
      roundTripsMs.push(performance.now() - start);
    }
    // Not the longest: this process may have to wait for a processor.
    expect(roundTripsMs.toSorted((a, b) => a - b)[25]).toBeLessThan(1000);
    await other.until(
      'the slow one is ended',
      () => {
        other.send(encodeData(keyOf('other'), payloadOf(0)));
        return relay.state.tallies.closed.slow === 1;
      },
      8000,
    );
  } finally {
    clearInterval(flood);
  }
  // Its two lanes, and the read that the kernel has not taken whole.
  expect(most).toBeLessThan(queueBytes + 32 * 1024 + 3 * 65_605 + 330_000);
  expect(relay.state.heldBytes).toBe(0);
});
