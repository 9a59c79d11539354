import { HEALTH } from '@unbounded/relay-protocol';
import fc from 'fast-check';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';

import { leaveDelay, MOST_FAILURES, reconnectDelay, STABLE_MS } from './backoff.ts';
import { dialWith } from './dial.ts';
import { startDocumentedServer } from './test/documented-server.ts';
import { startExtendedServer } from './test/extended-server.ts';
import { FakeClock } from './test/fake-clock.ts';
import { keyOf, newKeys, startClient } from './test/test-client.ts';
import { until } from './test/until.ts';

const identity = { publicKey: keyOf('a') };

test('delays are anything up to a limit that doubles from 1 s to 30 s', () => {
  const limits = Array.from({ length: 8 }, (_, index) => reconnectDelay(index + 1, () => 1));
  expect(limits).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  expect(reconnectDelay(MOST_FAILURES, () => 1)).toBe(30_000);
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1e6 }), fc.double({ min: 0, max: 1, noNaN: true }), (failures, random) => {
      const delay = reconnectDelay(failures, () => random);
      return delay >= 0 && delay <= 30_000;
    }),
  );
});

/** Sockets that never connect by themselves; the test says what becomes of them. */
const handMade = () => {
  const sockets: Socket[] = [];
  const dial = (): Socket => {
    const socket = new Socket();
    sockets.push(socket);
    return socket;
  };
  return { sockets, dial };
};

test('attempts that fail wait longer and longer, and each makes one connection', () => {
  const { sockets, dial } = handMade();
  const clock = new FakeClock();
  using a = startClient(1, { identity, clock, dial, random: () => 1 });
  for (const delay of [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) {
    sockets.at(-1)!.emit('error', new Error('connect ECONNREFUSED'));
    expect(clock.pending).toEqual([delay]);
    clock.pass(delay);
  }
  expect(sockets).toHaveLength(8);
  expect(a.client.state).toMatchObject({ phase: 'connecting', failures: 7, generation: 8 });
});

test('many signs of one failure are one failure, and never end the next connection', () => {
  const { sockets, dial } = handMade();
  const clock = new FakeClock();
  using a = startClient(1, { identity, clock, dial, random: () => 1 });
  const failing = sockets[0]!;
  const signs = ['error', 'end', 'close', 'error'] as const;
  for (const sign of signs) failing.emit(sign, new Error('reset'));
  expect(clock.pending).toEqual([1000]);
  clock.pass(1000);
  expect(sockets).toHaveLength(2);
  for (const sign of signs) failing.emit(sign, new Error('late'));
  failing.emit('connect');
  failing.emit('data', Buffer.from([0xff, 0xff, 0xff, 0xff]));
  expect(a.client.state).toMatchObject({ phase: 'connecting', failures: 1, generation: 2 });
  expect([sockets.length, sockets[1]!.destroyed]).toEqual([2, false]);
});

test('a proof that is ready only after its connection has ended goes nowhere', async () => {
  await using server = await startExtendedServer();
  const keys = newKeys();
  const proofs: (() => void)[] = [];
  const slow = async (publicKey: Uint8Array): Promise<Uint8Array> => {
    await new Promise<void>((resolve) => proofs.push(resolve));
    return keys.exchange(publicKey);
  };
  using a = startClient(server.port, { identity: { ...keys, exchange: slow }, random: () => 0 });
  await until('it is asked', () => proofs.length === 1);
  server.connections[0]!.socket.destroy();
  await until('it is asked again', () => proofs.length === 2);
  proofs[0]!();
  proofs[1]!();
  await until('it is proven', () => a.client.state.isProven);
  expect(server.connections.map(({ kinds }) => kinds.filter((kind) => kind === 'proof').length)).toEqual([0, 1]);
});

test('who cannot reach its private key does not register without proof', async () => {
  await using server = await startExtendedServer();
  const exchange = (): never => {
    throw new Error('the signer does not answer');
  };
  using a = startClient(server.port, { identity: { publicKey: newKeys().publicKey, exchange }, random: () => 1 });
  await until('it has given up', () => a.client.state.phase === 'waiting');
  expect(a.client.state.lastEnd).toMatchObject({ reason: 'unproven', message: expect.stringContaining('the signer') });
});

test('only a session of 30 s makes the delay short again', async () => {
  await using server = await startDocumentedServer();
  const clock = new FakeClock();
  using a = startClient(server.port, { identity, clock, random: () => 1 });
  const session = async (ms: number): Promise<number> => {
    await until('Hello is there', () => server.relay.registered === 1 && clock.pending.includes(1000));
    clock.pass(1000);
    clock.pass(ms);
    for (const socket of server.sockets) socket.destroy();
    await until('it is lost', () => a.client.state.phase === 'waiting' && server.relay.registered === 0);
    const [delay] = clock.pending;
    clock.pass(delay!);
    return delay!;
  };
  const delays = [];
  for (const ms of [0, 100, 29_999, 30_000, 0]) delays.push(await session(ms));
  expect(delays).toEqual([1000, 2000, 4000, 1000, 2000]);
});

test('a thousand clients that lose their relay together do not come back together', () => {
  const clock = new FakeClock();
  const { sockets, dial } = handMade();
  const clients = Array.from({ length: 1000 }, () => startClient(1, { identity, clock, dial }));
  for (const socket of [...sockets]) socket.emit('error', new Error('connect ECONNREFUSED'));
  const inTenths = Array.from({ length: 10 }, (_, tenth) =>
    clock.pending.filter((ms) => Math.floor(ms / 100) === tenth),
  );
  for (const some of inTenths) expect(some.length).toBeGreaterThan(50);
  for (const { client } of clients) client.close();
});

test('whose key another client has as well comes back late', async () => {
  await using server = await startExtendedServer();
  using a = startClient(server.port, { identity: newKeys(), clock: new FakeClock(), random: () => 1 });
  await until('it is proven', () => a.client.state.isProven);
  const [connection] = server.connections;
  connection!.say({ kind: 'health', code: HEALTH.duplicateKey, text: 'another client has registered your key' });
  connection!.socket.end();
  await until('it is lost', () => a.client.state.phase === 'waiting');
  expect(a.client.state.failures).toBe(MOST_FAILURES);
});

test('at a drain the next connection is made first, at a moment of its own, and no packet is lost or out of order', async () => {
  await using server = await startExtendedServer();
  const clock = new FakeClock();
  using a = startClient(server.port, { identity: newKeys(), clock, random: () => 0.5 });
  await until('it is proven', () => a.client.state.rttMs !== undefined);
  clock.pass(STABLE_MS);
  const [first] = server.connections;
  first!.say({ kind: 'drain', reconnectInMs: 1000, tryForMs: 5000 });
  await until('it knows', () => clock.pending.includes(750));
  first!.say({ kind: 'drain', reconnectInMs: 0, tryForMs: 0 });
  clock.pass(749);
  expect(a.client.state.phase).toBe('connected');
  clock.pass(1);
  expect(a.client.state.phase).toBe('leaving');
  server.manners.answersPings = false; // so that the test says when the first has taken all
  let sent = 0;
  // Numbers of two bytes: under load there are more than 256 turns of the loop until it has left.
  const send = (): void => {
    a.client.send(keyOf('b'), Buffer.from([4, sent >> 8, sent & 0xff]));
    sent++;
  };
  const numberOf = (payload: Uint8Array): number => (payload[1]! << 8) | payload[2]!;
  while (a.client.state.phase === 'leaving') {
    send();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await until('all are there', () => first!.data.length === sent);
  const onFirst = sent;
  send();
  send();
  const [, second] = server.connections;
  await until('the first is asked whether it has taken all', () => first!.kinds.at(-1) === 'ping');
  expect(second!.data).toEqual([]);
  server.manners.answersPings = true;
  clock.pass(2000); // nor does it wait for ever
  await until('the rest is there', () => second!.data.length === 2);
  expect([...first!.data, ...second!.data].map(numberOf)).toEqual(Array.from({ length: sent }, (_, n) => n));
  expect(onFirst).toBe(first!.data.length);
  first!.socket.end();
  await until('it has gone', () => first!.socket.closed);
  expect(a.client.state).toMatchObject({ phase: 'connected', failures: 0, lastEnd: undefined });
});

test('a relay that asks to leave and does not end is left in the end', async () => {
  await using server = await startExtendedServer();
  const clock = new FakeClock();
  using a = startClient(server.port, { identity: newKeys(), clock });
  await until('it is proven', () => a.client.state.isProven);
  clock.pass(STABLE_MS);
  server.connections[0]!.say({ kind: 'drain', reconnectInMs: 0, tryForMs: 60_000 });
  await until('it knows', () => clock.pending[0] === 0);
  clock.pass(0);
  await until('there are two', () => a.client.state.isProven && server.connections.length === 2);
  await until('the next is used', () => a.client.state.phase === 'connected');
  clock.pass(30_000);
  await until('the first is ended', () => server.connections[0]!.socket.closed);
  expect(a.client.isConnected).toBe(true);
});

test('a relay that drains each connection at once gets them ever more slowly, and has two at most', async () => {
  await using server = await startExtendedServer();
  const clock = new FakeClock();
  using a = startClient(server.port, { identity: newKeys(), clock, random: () => 1 });
  for (const [round, delay] of [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000].entries()) {
    await until('the next one is used', () => a.client.state.phase === 'connected' && a.client.state.isProven);
    expect(server.connections).toHaveLength(round + 1);
    server.connections[round]!.say({ kind: 'drain', reconnectInMs: 0, tryForMs: 0 });
    await until('it knows', () => clock.pending[0] === 0);
    clock.pass(0);
    expect(a.client.state.phase).toBe('leaving'); // its peers go to other relays, if there are any
    clock.pass(delay - 1);
    expect(a.client.state.generation).toBe(round + 1);
    clock.pass(1);
    expect(a.client.state.generation).toBe(round + 2);
    await until('those before are ended', () => server.connections.slice(0, -2).every(({ socket }) => socket.closed));
  }
});

test('a drain that follows an outage is no further failure: it is left in its time', async () => {
  await using server = await startExtendedServer();
  const clock = new FakeClock();
  let isAway = true;
  const dial = dialWith();
  const away = (endpoint: Parameters<typeof dial>[0]) => dial(isAway ? { ...endpoint, port: 1 } : endpoint);
  using a = startClient(server.port, { identity: newKeys(), clock, random: () => 1, dial: away });
  for (let failures = 1; failures <= 6; failures++) {
    await until('it failed', () => a.client.state.failures === failures);
    if (failures === 6) isAway = false;
    clock.pass(reconnectDelay(failures, () => 1));
  }
  await until('it is back', () => a.client.state.isProven);
  server.connections[0]!.say({ kind: 'drain', reconnectInMs: 2000, tryForMs: 10_000 });
  await until('it knows', () => clock.pending[0] === 2000);
  clock.pass(2000);
  await until('the next one is used', () => server.connections.length === 2 && a.client.state.phase === 'connected');
  expect(a.client.state.failures).toBe(6);
});

test('a relay that drains for years is left after ten minutes at most', () => {
  expect(leaveDelay(2 ** 32 - 1, () => 1)).toBe(600_000);
  expect(leaveDelay(10_000, () => 0)).toBe(5000);
});

test('a relay that refuses the next connection while it drains is used until it ends', async () => {
  await using server = await startExtendedServer();
  const clock = new FakeClock();
  let isRefusing = false;
  const dial = dialWith();
  using a = startClient(server.port, {
    identity: newKeys(),
    clock,
    random: () => 1,
    dial: (endpoint) => dial(isRefusing ? { ...endpoint, port: 1 } : endpoint),
  });
  await until('it is proven', () => a.client.state.isProven);
  clock.pass(STABLE_MS);
  isRefusing = true;
  server.connections[0]!.say({ kind: 'drain', reconnectInMs: 10, tryForMs: 5000 });
  await until('it knows', () => clock.pending[0] === 10);
  clock.pass(10);
  await until('it is refused', () => a.client.state.failures === 1);
  expect(a.client.send(keyOf('b'), Buffer.from([4]))).toBe(true);
  await until('it has come', () => server.connections[0]!.data.length === 1);
  server.connections[0]!.socket.destroy();
  await until('it is lost', () => !a.client.isConnected);
  expect(clock.pending).toEqual([1000]);
});

test('a client that is retired stays as long as its relay does, and comes back when it is wanted again', async () => {
  await using server = await startExtendedServer();
  const clock = new FakeClock();
  using a = startClient(server.port, { identity: newKeys(), clock });
  await until('it is proven', () => a.client.state.isProven);
  a.client.retire();
  expect(a.client.state.phase).toBe('leaving');
  server.connections[0]!.socket.destroy();
  await until('it is lost', () => !a.client.isConnected);
  expect([a.client.state.phase, clock.pending]).toEqual(['idle', []]);
  a.client.revive();
  await until('it is back', () => a.client.isConnected);
  expect(a.client.state.phase).toBe('connected');
});

test('what has been sent goes out when the client is closed', async () => {
  await using server = await startExtendedServer();
  using a = startClient(server.port, { identity: newKeys() });
  await until('it is proven', () => a.client.state.isProven);
  a.client.send(keyOf('b'), Buffer.from('last'));
  a.client.close();
  await until('it has come', () => server.connections[0]!.data.length === 1);
  expect(a.client.state.phase).toBe('closed');
});
