import {
  decodeMessage,
  encodeData,
  encodeError,
  encodeExtension,
  FrameParser,
  PEER_GONE,
} from '@unbounded/relay-protocol';
import { expect, test } from 'vitest';

import { RelayClient } from './client.ts';
import { type DocumentedServer, startDocumentedServer } from './test/documented-server.ts';
import { startExtendedServer } from './test/extended-server.ts';
import { FakeClock } from './test/fake-clock.ts';
import { keyOf, local, newKeys, startClient } from './test/test-client.ts';
import { until } from './test/until.ts';

const text = (value: string): Buffer => Buffer.from(`\u0004${value}`);
/** A client with the extension's grace over at once: what a relay of the document would need a second for. */
const joined = async ({ port, relay }: DocumentedServer, name: string) => {
  const clock = new FakeClock();
  const { registered } = relay;
  const one = startClient(port, { identity: { publicKey: keyOf(name) }, clock });
  await until('it is registered', () => clock.pending.includes(1000) && relay.registered > registered);
  clock.pass(1000);
  return { ...one, clock };
};

test('with a relay that answers nothing it is connected after a second, and packets go both ways', async () => {
  await using server = await startDocumentedServer();
  using a = await joined(server, 'a');
  using b = await joined(server, 'b');
  expect(a.client.state).toMatchObject({ phase: 'connected', isProven: false, isExtended: false, generation: 1 });
  a.client.send(keyOf('b'), text('hello'));
  a.client.send(keyOf('b'), Buffer.alloc(0));
  a.client.send(keyOf('b'), Buffer.alloc(65_503, 4));
  await until('they have come', () => b.got.length === 3);
  expect(b.got.map(({ key, payload }) => [key, payload.length])).toEqual(
    [6, 0, 65_503].map((size) => [keyOf('a'), size]),
  );
  b.client.send(keyOf('a'), text('back'));
  await until('the answer', () => a.got.length === 1);
  expect(a.got[0]).toEqual({ key: keyOf('b'), payload: text('back') });
});

test('Register and Hello are one write, the first of the connection', async () => {
  await using server = await startDocumentedServer();
  using _a = await joined(server, 'a');
  await until('it has come', () => (server.heard[0]?.length ?? 0) > 0);
  const kinds: string[] = [];
  new FrameParser().push(server.heard[0]![0]!, (bytes, start, end) =>
    kinds.push(decodeMessage(bytes.subarray(start, end)).kind),
  );
  expect(kinds).toEqual(['register', 'unknown']);
});

test.each([1, 2, 3, 5, 36, 37, 38])('frames that come in pieces of %i bytes are whole again', async (pieceBytes) => {
  await using server = await startDocumentedServer();
  using a = await joined(server, 'a');
  using b = await joined(server, 'b');
  server.pieceBytes = pieceBytes;
  const payloads = Array.from({ length: 20 }, (_, index) => Buffer.alloc(index * 7, index));
  for (const payload of payloads) a.client.send(keyOf('b'), payload);
  await until('they have come', () => b.got.length === payloads.length);
  expect(b.got.map(({ payload }) => payload)).toEqual(payloads);
});

test('frames of all types in one piece are taken one after the other, and unknown ones are ignored', async () => {
  await using server = await startDocumentedServer();
  using a = await joined(server, 'a');
  const [socket] = server.sockets;
  const ping = encodeExtension({ kind: 'ping', data: Buffer.from('12345678') });
  const unknown = Buffer.from([0, 0, 0, 3, 0x7e, 1, 2]);
  socket!.write(Buffer.concat([unknown, encodeData(keyOf('x'), text('1')), ping, encodeData(keyOf('y'), text('2'))]));
  await until('both have come', () => a.got.length === 2);
  expect(a.got.map(({ key }) => key)).toEqual([keyOf('x'), keyOf('y')]);
  await until('the ping is answered', () => Buffer.concat(server.heard[0]!).includes('12345678'));
});

test('keepalives go out every 25 s to a relay of the document', async () => {
  await using server = await startDocumentedServer();
  using a = await joined(server, 'a');
  await until('Hello is there', () => Buffer.concat(server.heard[0] ?? []).length > 37);
  const before = Buffer.concat(server.heard[0]!).length;
  a.clock.pass(75_000);
  await until('three', () => Buffer.concat(server.heard[0]!).length === before + 15);
  expect(Buffer.concat(server.heard[0]!).subarray(before).toString('hex')).toBe('0000000103'.repeat(3));
  expect(a.client.isConnected).toBe(true);
});

test('a relay that proves itself is connected at once, and the round trip is known', async () => {
  await using server = await startExtendedServer({ staticKey: newKeys() });
  const keys = newKeys();
  using a = startClient(server.port, { identity: keys, pinnedKey: server.manners.staticKey!.publicKey });
  await until('it is connected', () => a.client.state.rttMs !== undefined);
  expect(a.client.state).toMatchObject({ phase: 'connected', isProven: true, isExtended: true, failures: 0 });
  expect(server.connections[0]!.kinds.slice(0, 3)).toEqual(['register', 'hello', 'proof']);
  server.connections[0]!.say({ kind: 'peerGone', key: keyOf('b'), reason: PEER_GONE.notHere });
  await until('it is told', () => a.gone.length === 1);
  expect(Buffer.from(a.gone[0]!.key)).toEqual(keyOf('b'));
});

test.each([
  ['another key than the pinned one', { claimedKey: newKeys().publicKey }, 'another key than the pinned one'],
  ['the pinned key without having it', { claimedKey: 'pinned' }, 'the relay has ended|reset|closed'],
  ['a Ready that proves nothing', { spoilsReady: true }, 'wrong tag'],
  ['a key of low order', { ephemeralKey: new Uint8Array(32) }, 'low order'],
] as const)('a relay with %s is left', async (_name, manners, message) => {
  const pinned = newKeys();
  const claimed = 'claimedKey' in manners ? manners.claimedKey : undefined;
  await using server = await startExtendedServer({
    ...(manners as object),
    ...(claimed === 'pinned' ? { claimedKey: pinned.publicKey } : claimed === undefined && { staticKey: pinned }),
  });
  using a = startClient(server.port, { identity: newKeys(), pinnedKey: pinned.publicKey, random: () => 0.99 });
  await until('it is left', () => a.client.state.lastEnd !== undefined);
  expect(a.client.state.lastEnd!.message).toMatch(new RegExp(message));
  expect(a.phases).toEqual(['connecting', 'waiting']);
});

test('a relay without the extension is left when a key is pinned', async () => {
  await using server = await startDocumentedServer();
  const clock = new FakeClock();
  using a = startClient(server.port, { identity: newKeys(), pinnedKey: keyOf('relay'), clock });
  await until('Hello is there', () => (server.heard[0]?.length ?? 0) > 0);
  clock.pass(10_000);
  expect(a.client.state).toMatchObject({ phase: 'waiting', lastEnd: { reason: 'unproven' } });
});

test('a pinned key without a private key to prove with is refused', () => {
  expect(() => startClient(1, { identity: { publicKey: keyOf('a') }, pinnedKey: keyOf('r') })).toThrow('exchange');
  const events = { onState: () => {}, onData: () => {}, onPeerGone: () => {} };
  expect(() => new RelayClient({ ways: [], identity: { publicKey: keyOf('a') }, events })).toThrow('no endpoint');
});

test('what an Error frame says is why the connection ended', async () => {
  await using server = await startDocumentedServer();
  using a = await joined(server, 'a');
  const [socket] = server.sockets;
  socket!.end(encodeError('authentication required'));
  await until('it is lost', () => !a.client.isConnected);
  expect(a.client.state.lastEnd).toMatchObject({ reason: 'refused', message: expect.stringMatching(/required$/) });
});

test.each([
  ['an illegal length', Buffer.from([0xff, 0xff, 0xff, 0xff])],
  ['Data without a key', Buffer.from([0, 0, 0, 2, 2, 1])],
  ['a Challenge that is cut short', Buffer.from([0, 0, 0, 2, 0x41, 1])],
])('%s ends the connection', async (_name, bytes) => {
  await using server = await startDocumentedServer();
  using a = await joined(server, 'a');
  const [socket] = server.sockets;
  socket!.write(bytes);
  await until('it is lost', () => !a.client.isConnected);
  expect(a.client.state.lastEnd!.reason).toBe('malformed');
});

test('without a connection sends go nowhere and say so; too long payloads as well', async () => {
  using a = startClient(1, { identity: { publicKey: keyOf('a') }, clock: new FakeClock() });
  expect(a.client.send(keyOf('b'), text('x'))).toBe(false);
  await until('refused', () => a.client.state.phase === 'waiting');
  expect(a.client.send(keyOf('b'), Buffer.alloc(65_504))).toBe(false);
  expect(a.client.tallies.dropped).toMatchObject({ noRelay: 1, tooLong: 1 });
});

test('no connection within 10 s is a failure', async () => {
  const clock = new FakeClock();
  // Nobody answers: the socket never connects.
  const { Socket } = await import('node:net');
  using a = startClient(1, { identity: { publicKey: keyOf('a') }, clock, dial: () => new Socket() });
  clock.pass(9999);
  expect(a.client.state.phase).toBe('connecting');
  clock.pass(1);
  expect(a.client.state).toMatchObject({ phase: 'waiting', lastEnd: { reason: 'unreachable' } });
});

test('a silence of 75 s ends the connection when the relay answers pings, and not when it answers', async () => {
  await using server = await startExtendedServer();
  const clock = new FakeClock();
  using a = startClient(server.port, { identity: newKeys(), clock });
  await until('it is connected', () => a.client.state.rttMs !== undefined);
  for (let round = 2; round <= 5; round++) {
    clock.pass(25_000);
    const [connection] = server.connections;
    await until('a ping', () => connection!.kinds.filter((kind) => kind === 'ping').length === round);
    connection!.say({ kind: 'peerGone', key: keyOf(`${round}`), reason: 0 });
    await until('its answer has come', () => a.gone.length === round - 1);
  }
  expect(a.client.isConnected).toBe(true);
  server.manners.answersPings = false;
  clock.pass(74_999);
  expect(a.client.isConnected).toBe(true);
  clock.pass(1);
  expect(a.client.state.lastEnd).toMatchObject({ reason: 'silent' });
});

test('the next of several ways is tried after a failure, and all of them before waiting longer', async () => {
  await using server = await startDocumentedServer();
  const clock = new FakeClock();
  const dialled: number[] = [];
  const { dialWith } = await import('./dial.ts');
  using a = startClient([1, 2, server.port], {
    identity: { publicKey: keyOf('a') },
    clock,
    random: () => 0.5,
    dial: (endpoint) => {
      dialled.push(endpoint.port);
      return dialWith()(endpoint);
    },
  });
  for (let attempt = 0; attempt < 2; attempt++) {
    await until('refused', () => a.client.state.phase === 'waiting');
    expect(clock.pending).toEqual([500]);
    clock.pass(500);
  }
  await until('connected', () => clock.pending.includes(1000));
  expect(dialled).toEqual([1, 2, server.port]);
  a.client.setWays([local(server.port)]);
  expect(() => a.client.setWays([])).toThrow('no endpoint');
});
