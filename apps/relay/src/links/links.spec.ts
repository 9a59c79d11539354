import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { once } from 'node:events';

import { encodeData, encodeRegister, PEER_GONE } from '@unbounded/relay-protocol';
import { expect, test } from 'vitest';

import type { RelayOptions } from '../relay.ts';
import type { HostAndPort } from './links.ts';
import { dial, join, keyOf, newKeys, prove, TestPeer } from '@unbounded/relay-testing/peer';
import { startRelay } from '../test/test-relay.ts';

const secret = randomBytes(32);

/** Where replicas are: said once they listen, and found with the next look. */
type Places = HostAndPort[];

const startReplica = async (
  places: Places,
  { key = secret, ...options }: Partial<RelayOptions> & { readonly key?: Buffer } = {},
) => {
  const listen = { host: '127.0.0.1', port: 0 };
  return startRelay({ ...options, links: { listen, peers: places, secret: () => key, everyMs: 50 } });
};

const placeOf = (relay: TestRelay): HostAndPort => ({ host: '127.0.0.1', port: relay.linkPort! });

type TestRelay = Awaited<ReturnType<typeof startRelay>>;

/** Each has its own address among the others', as in the answer for a headless Service's name. */
const replicas = async (count: number, options: Partial<RelayOptions> = {}): Promise<TestRelay[]> => {
  const places: Places = [];
  const relays = await Promise.all(Array.from({ length: count }, () => startReplica(places, options)));
  places.push(...relays.map(placeOf));
  using idle = await dial(relays[0]!.port);
  await idle.until('all are linked', () => relays.every(({ state }) => state.links === count - 1));
  return relays;
};

const stopAll = (relays: readonly TestRelay[]): AsyncDisposable => ({
  [Symbol.asyncDispose]: () => Promise.resolve(relays.forEach((relay) => relay.stop())),
});

/** Sends until something comes out: presence at another replica is heard of a moment after the registration. */
const reaches = async (sender: TestPeer, receiver: TestPeer, key: Uint8Array): Promise<void> => {
  await receiver.until('a frame gets through', () => {
    sender.send(encodeData(key, Buffer.from('are you there?')));
    return receiver.frames.length > 0;
  });
  sender.send(encodeData(key, Buffer.from('last')));
  await receiver.until('the last', () => receiver.frames.at(-1)!.subarray(37).toString() === 'last');
  receiver.frames.length = 0;
};

test('a client of one replica reaches those of the others, both ways, in order', async () => {
  const relays = await replicas(3);
  await using _ = stopAll(relays);
  const peers = await Promise.all(relays.map((relay, index) => join(relay.port, keyOf(`at ${index}`))));
  const [a, , c] = peers as [TestPeer, TestPeer, TestPeer];
  await reaches(a, c, keyOf('at 2'));
  await reaches(c, a, keyOf('at 0'));
  const payloads = Array.from({ length: 2000 }, (_unused, index) =>
    Buffer.alloc(40 + (index % 1300), 4 + (index % 200)),
  );
  a.send(...payloads.map((payload) => encodeData(keyOf('at 2'), payload)));
  await c.until('all', () => c.frames.length === payloads.length);
  expect(c.frames.map((frame) => frame.subarray(37))).toEqual(payloads);
  expect(c.frames.every((frame) => frame.subarray(5, 37).equals(keyOf('at 0')))).toBe(true);
  for (const peer of peers) peer.socket.destroy();
});

test('the longest frame crosses a link', async () => {
  const relays = await replicas(2);
  await using _ = stopAll(relays);
  using a = await join(relays[0]!.port, keyOf('a'));
  using b = await join(relays[1]!.port, keyOf('b'));
  await reaches(a, b, keyOf('b'));
  const payload = randomBytes(65_503);
  a.send(encodeData(keyOf('b'), payload), encodeData(keyOf('b'), Buffer.alloc(0)));
  await b.until('both', () => b.frames.length === 2);
  expect(b.frames[0]!.subarray(37).equals(payload)).toBe(true);
});

test('a client that leaves is gone everywhere, and who sends to it is told', async () => {
  const relays = await replicas(2);
  await using _ = stopAll(relays);
  using a = await dial(relays[0]!.port);
  await prove(a, newKeys());
  using b = await join(relays[1]!.port, keyOf('b'));
  await reaches(a, b, keyOf('b'));
  b.socket.destroy();
  await a.until('told', () => {
    a.send(encodeData(keyOf('b'), Buffer.from('x')));
    return a.frames.length > 0;
  });
  expect(await a.next()).toMatchObject({ kind: 'peerGone', key: keyOf('b'), reason: PEER_GONE.left });
});

test('a replica that ends is forgotten; one that starts anew is found', async () => {
  const places: Places = [];
  const [first, second] = await Promise.all([startReplica(places), startReplica(places)]);
  places.push(placeOf(first), placeOf(second));
  await using _ = stopAll([first]);
  using a = await join(first.port, keyOf('a'));
  using b = await join(second.port, keyOf('b'));
  await reaches(a, b, keyOf('b'));
  second.stop();
  await a.until('it is forgotten', () => first.state.links === 0);
  const third = await startReplica(places);
  places.splice(1, 1, placeOf(third));
  await using _third = stopAll([third]);
  using again = await join(third.port, keyOf('b'));
  await reaches(a, again, keyOf('b'));
  await reaches(again, a, keyOf('a'));
  expect(first.state).toMatchObject({ links: 1, registered: 1 });
});

test('a key that is proven at one replica cannot be had without a proof at another', async () => {
  const relays = await replicas(2, { registerDeadlineMs: 300 });
  await using _ = stopAll(relays);
  const keys = newKeys();
  using early = await join(relays[1]!.port, keys.publicKey);
  using victim = await dial(relays[0]!.port);
  await prove(victim, keys);
  expect(await early.next()).toMatchObject({ kind: 'error', text: 'another client has proven this key' });
  await early.untilClosed();
  using late = await dial(relays[1]!.port);
  late.send(encodeRegister(keys.publicKey));
  expect(await late.next()).toMatchObject({ kind: 'error' });
  using sender = await join(relays[1]!.port, keyOf('sender'));
  await reaches(sender, victim, keys.publicKey);
  expect(late.frames).toEqual([]);
});

test('what came over a link never goes over another one', async () => {
  // The middle one is linked with both others, which do not know each other.
  const [outer, inner]: [Places, Places] = [[], []];
  const relays = [await startReplica(outer), await startReplica(inner), await startReplica(outer)] as const;
  outer.push(placeOf(relays[1]));
  inner.push(placeOf(relays[0]), placeOf(relays[2]));
  await using _ = stopAll(relays);
  using left = await dial(relays[0].port);
  await prove(left, newKeys());
  using middle = await join(relays[1].port, keyOf('middle'));
  using right = await join(relays[2].port, keyOf('right'));
  await reaches(left, middle, keyOf('middle'));
  await reaches(right, middle, keyOf('middle'));
  left.frames.length = 0; // it was told of the middle one, before that was known
  await left.until('told', () => {
    left.send(encodeData(keyOf('right'), Buffer.from('x')));
    return left.frames.length > 0;
  });
  expect(await left.next()).toMatchObject({ kind: 'peerGone', key: keyOf('right') });
  expect(right.frames).toEqual([]);
});

test('who does not have the secret gets no link, by TLS or without', async () => {
  const places: Places = [];
  const relay = await startReplica(places);
  const stranger = await startReplica(places, { key: randomBytes(32) });
  places.push(placeOf(relay), placeOf(stranger));
  await using _ = stopAll([relay, stranger]);
  const plain = connect({ port: relay.linkPort!, host: '127.0.0.1' }).resume();
  plain.write(Buffer.from('0000001249000100112233445566778899aabbccddeeff', 'hex'));
  await once(plain, 'close');
  const anonymous = connectTls({ port: relay.linkPort!, host: '127.0.0.1', rejectUnauthorized: false });
  await expect(once(anonymous, 'secureConnect')).rejects.toThrow(/handshake failure|alert|closed/i);
  using client = await join(relay.port, keyOf('client'));
  using other = await join(stranger.port, keyOf('other'));
  client.send(encodeData(keyOf('other'), Buffer.from('x')), encodeData(keyOf('client'), Buffer.from('self')));
  await client.next();
  expect(relay.state.links + stranger.state.links).toBe(0);
  expect(other.frames).toEqual([]);
});

test('connections without the secret take no replica’s place, and are cut', async () => {
  const places: Places = [];
  await using first = await startReplica(places);
  const strangers = Array.from(
    { length: 300 },
    () => new TestPeer(connect({ port: first.linkPort!, host: '127.0.0.1' })),
  );
  await using second = await startReplica(places);
  using idle = await dial(first.port);
  await idle.until('most are cut', () => strangers.filter(({ closed }) => closed).length >= 200);
  expect(first.state.tallies.refused.links).toBeGreaterThanOrEqual(200);
  places.push(placeOf(first), placeOf(second));
  await idle.until('the replicas are linked', () => first.state.links === 1 && second.state.links === 1);
  await idle.until('the others are cut by the deadline', () => strangers.every(({ closed }) => closed));
  idle.socket.destroy();
});

test('a new secret is taken without a restart: replicas that have it find each other', async () => {
  let current = randomBytes(32);
  const listen = { host: '127.0.0.1', port: 0 };
  const places: Places = [];
  const start = (secret: () => Buffer) => startRelay({ links: { listen, peers: places, secret, everyMs: 50 } });
  await using running = await start(() => current);
  const next = randomBytes(32);
  await using fresh = await start(() => next);
  places.push(placeOf(running), placeOf(fresh));
  using idle = await dial(running.port);
  await idle.until('none was let in', () => running.state.links === 0);
  current = next;
  await idle.until('they are linked', () => running.state.links === 1 && fresh.state.links === 1);
  expect([running.state.links, fresh.state.links]).toEqual([1, 1]);
});
