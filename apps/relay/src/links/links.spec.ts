import { randomBytes } from 'node:crypto';
import { connect, createServer, type AddressInfo } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { once } from 'node:events';

import { encodeData, encodeRegister, PEER_GONE } from '@unbounded/relay-protocol';
import { expect, test } from 'vitest';

import { type RelayOptions } from '../relay.ts';
import { dial, join, keyOf, newKeys, prove, type TestPeer } from '../test/test-peer.ts';
import { startRelay } from '../test/test-relay.ts';

const secret = randomBytes(32);

/** Ports that are free now: replicas must know each other's before they start. */
const freePorts = async (count: number): Promise<number[]> => {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
};

const linksOn = (port: number, ports: readonly number[], key = secret): NonNullable<RelayOptions['links']> => ({
  listen: { host: '127.0.0.1', port },
  // Its own address is among them, as in the answer for a headless Service's name.
  peers: ports.map((peer) => ({ host: '127.0.0.1', port: peer })),
  secret: key,
  everyMs: 50,
});

type TestRelay = Awaited<ReturnType<typeof startRelay>>;

const replicas = async (count: number, options: Partial<RelayOptions> = {}): Promise<TestRelay[]> => {
  const ports = await freePorts(count);
  const relays = await Promise.all(ports.map((port) => startRelay({ ...options, links: linksOn(port, ports) })));
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
  const ports = await freePorts(2);
  const [first, second] = await Promise.all(ports.map((port) => startRelay({ links: linksOn(port, ports) })));
  await using _ = stopAll([first!]);
  using a = await join(first!.port, keyOf('a'));
  using b = await join(second!.port, keyOf('b'));
  await reaches(a, b, keyOf('b'));
  second!.stop();
  await a.until('it is forgotten', () => first!.state.links === 0);
  const third = await startRelay({ links: linksOn(ports[1]!, ports) });
  await using _third = stopAll([third]);
  using again = await join(third.port, keyOf('b'));
  await reaches(a, again, keyOf('b'));
  await reaches(again, a, keyOf('a'));
  expect(first!.state).toMatchObject({ links: 1, registered: 1 });
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
  const ports = await freePorts(3);
  // The middle one is linked with both others, which do not know each other.
  const [a, m, b] = ports as [number, number, number];
  const relays = await Promise.all([
    startRelay({ links: linksOn(a, [m]) }),
    startRelay({ links: linksOn(m, [a, b]) }),
    startRelay({ links: linksOn(b, [m]) }),
  ]);
  await using _ = stopAll(relays);
  using left = await dial(relays[0].port);
  await prove(left, newKeys());
  using middle = await join(relays[1].port, keyOf('middle'));
  using right = await join(relays[2].port, keyOf('right'));
  await reaches(left, middle, keyOf('middle'));
  await reaches(right, middle, keyOf('middle'));
  left.send(encodeData(keyOf('right'), Buffer.from('x')));
  expect(await left.next()).toMatchObject({ kind: 'peerGone', key: keyOf('right') });
  expect(right.frames).toEqual([]);
});

test('who does not have the secret gets no link, by TLS or without', async () => {
  const ports = await freePorts(2);
  const relay = await startRelay({ links: linksOn(ports[0]!, ports) });
  const stranger = await startRelay({ links: linksOn(ports[1]!, ports, randomBytes(32)) });
  await using _ = stopAll([relay, stranger]);
  const plain = connect({ port: ports[0]!, host: '127.0.0.1' }).resume();
  plain.write(Buffer.from('0000001249000100112233445566778899aabbccddeeff', 'hex'));
  await once(plain, 'close');
  const anonymous = connectTls({ port: ports[0]!, host: '127.0.0.1', rejectUnauthorized: false });
  await expect(once(anonymous, 'secureConnect')).rejects.toThrow(/handshake failure|alert|closed/i);
  using client = await join(relay.port, keyOf('client'));
  using other = await join(stranger.port, keyOf('other'));
  client.send(encodeData(keyOf('other'), Buffer.from('x')), encodeData(keyOf('client'), Buffer.from('self')));
  await client.next();
  expect(relay.state.links + stranger.state.links).toBe(0);
  expect(other.frames).toEqual([]);
});
