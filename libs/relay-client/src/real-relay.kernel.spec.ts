import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { startApp } from '@unbounded/testing';
import { makeSelfSigned } from '@unbounded/testing/self-signed';
import { expect, test } from 'vitest';

import { dialWith } from './dial.ts';
import { type PoolOptions, RelayPool } from './pool.ts';
import { type Keys, local, newKeys, startClient } from './test/test-client.ts';
import { until } from './test/until.ts';
import { type StandIn, startStandIn } from './test/wireguard-stand-in.ts';
import { UdpProxy } from './udp-proxy.ts';

const text = (value: string): Buffer => Buffer.from(`\u0004${value}`);

/** The product's relay as a process. */
interface RealRelay extends AsyncDisposable {
  readonly port: number;
  readonly stop: (signal?: NodeJS.Signals) => Promise<number | null>;
}

const startRealRelay = async (flags: readonly string[] = [], port = 0): Promise<RealRelay> => {
  const app = startApp('relay', ['--addr', `127.0.0.1:${port}`, ...flags]);
  const relaying = () => app.log.find(({ msg }) => msg === 'relaying');
  await until('the relay relays', () => relaying() !== undefined, 30_000);
  return {
    port: relaying()!['port'] as number,
    stop: async (signal) => app.stop(signal),
    [Symbol.asyncDispose]: async () => app[Symbol.asyncDispose](),
  };
};

/** A file in a directory of its own, which goes with it. */
const temporary = async (files: Record<string, string>) => {
  const directory = await mkdtemp(join(tmpdir(), 'relay-client-'));
  for (const [name, content] of Object.entries(files)) await writeFile(join(directory, name), content, { mode: 0o600 });
  return {
    path: (name: string) => join(directory, name),
    [Symbol.asyncDispose]: async () => rm(directory, { recursive: true }),
  };
};

test('both ends prove their keys, also where the relay takes only proven ones; a pinned key that is not the relay’s ends it', async () => {
  const relayKeys = newKeys();
  await using files = await temporary({ key: relayKeys.privateKey.toString('base64') });
  await using relay = await startRealRelay(['--auth', 'require', '--key-file', files.path('key')]);
  const [aKeys, bKeys] = [newKeys(), newKeys()];
  using a = startClient(relay.port, { identity: aKeys, pinnedKey: relayKeys.publicKey });
  using b = startClient(relay.port, { identity: bKeys });
  await until('both are proven', () => a.client.state.isProven && b.client.state.isProven);
  a.client.send(bKeys.publicKey, text('hello'));
  await until('it comes', () => b.got.length === 1);
  expect(b.got[0]).toEqual({ key: aKeys.publicKey, payload: text('hello') });
  await until('round trips are known', () => a.client.state.rttMs !== undefined);
  using wrong = startClient(relay.port, { identity: newKeys(), pinnedKey: newKeys().publicKey });
  await until('it is left', () => wrong.client.state.lastEnd?.reason === 'unproven');
  using nobody = startClient(relay.port, { identity: { publicKey: newKeys().publicKey } });
  await until('it is refused', () => nobody.client.state.lastEnd?.reason === 'refused', 10_000);
  expect(nobody.client.state.lastEnd!.message).toContain('authentication required');
});

test('over TLS, with a certificate that is verified by name', async () => {
  await using files = await temporary({});
  const [key, cert] = [files.path('key.pem'), files.path('cert.pem')];
  makeSelfSigned('relay.example', { key, cert, altNames: ['DNS:relay.example'] });
  await using relay = await startRealRelay(['--tls-cert', cert, '--tls-key', key]);
  const ca = await readFile(cert);
  const way = (serverName: string) => [{ ...local(relay.port), isTls: true, serverName }];
  using a = startClient(1, { identity: newKeys(), dial: dialWith({ ca }), ways: way('relay.example') });
  await until('it is proven', () => a.client.state.isProven);
  using wrong = startClient(1, { identity: newKeys(), dial: dialWith({ ca }), ways: way('other.example') });
  await until('it is left', () => wrong.client.state.lastEnd?.reason === 'unreachable');
  using untrusting = startClient(1, { identity: newKeys(), ways: way('relay.example') });
  await until('it is left', () => untrusting.client.state.lastEnd?.reason === 'unreachable');
  expect(wrong.client.state.lastEnd!.message).toContain('other.example');
});

test('who has the same key takes it over, and who had it knows why and waits long', async () => {
  await using relay = await startRealRelay();
  const identity = newKeys();
  using first = startClient(relay.port, { identity, random: () => 1 });
  await until('the first is proven', () => first.client.state.isProven);
  using second = startClient(relay.port, { identity });
  await until('the first has lost it', () => first.client.state.phase === 'waiting');
  expect(first.client.state.failures).toBeGreaterThanOrEqual(6);
  using friend = startClient(relay.port, { identity: newKeys() });
  await until('both are proven', () => second.client.state.isProven && friend.client.state.isProven);
  friend.client.send(identity.publicKey, text('x'));
  await until('the second has it', () => second.got.length === 1);
  expect(first.got).toEqual([]);
});

const services = (relays: readonly RealRelay[]) =>
  relays.map(({ port }, index) => ({ name: `relay-${index}`, ways: [local(port)] }));
const openPool = (identity: Keys, relays: readonly RealRelay[], options: Partial<PoolOptions> = {}): RelayPool =>
  new RelayPool({ identity, services: services(relays), ...options });
const proven = (pool: RelayPool, count: number): boolean =>
  pool.state.relays.filter(({ isProven }) => isProven).length === count;

test('a relay where the peer is not is left for one where it is', async () => {
  await using one = await startRealRelay();
  await using two = await startRealRelay();
  const [aKeys, bKeys] = [newKeys(), newKeys()];
  using a = openPool(aKeys, [one, two]);
  await until('a is on both', () => proven(a, 2));
  const toB = a.open(bKeys.publicKey, () => {});
  const there = toB.relay === 'relay-0' ? two : one;
  const got: string[] = [];
  using b = openPool(bKeys, [there]);
  b.open(aKeys.publicKey, (payload) => got.push(payload.toString()));
  await until('b is on the other one', () => proven(b, 1));
  await until('what a sends comes to b', () => {
    toB.send(text('hello'));
    return got.length > 0;
  });
  expect(toB.relay).toBe(there === one ? 'relay-0' : 'relay-1');
});

/** A node: WireGuard's stand-in, a pool, and a proxy for the other node. */
interface Place extends Disposable {
  readonly wireGuard: StandIn;
  readonly pool: RelayPool;
  readonly proxy: UdpProxy;
  /** Numbers of the packets that have come, in their order. */
  readonly numbers: () => number[];
}
const openPlace = async (own: Keys, peer: Keys, relays: readonly RealRelay[]): Promise<Place> => {
  const wireGuard = await startStandIn();
  wireGuard.socket.setRecvBufferSize(4 * 1024 * 1024);
  const pool = openPool(own, relays);
  const proxy = await UdpProxy.open({ relays: pool, key: peer.publicKey, wireGuardPort: wireGuard.port });
  return {
    wireGuard,
    pool,
    proxy,
    numbers: () => wireGuard.got.map(({ payload }) => payload.readUInt32BE(4)),
    [Symbol.dispose]: () => {
      proxy.close();
      pool.close();
      wireGuard.close();
    },
  };
};
/** Packets of WireGuard's to the other node, some each millisecond. */
const stream = (from: Place) => {
  let sent = 0;
  const timer = setInterval(() => {
    for (let count = 0; count < 2; count++) {
      const packet = Buffer.alloc(1400, 4);
      packet.writeUInt32BE(sent++, 4);
      from.wireGuard.socket.send(packet, from.proxy.port, '127.0.0.1');
    }
  }, 1);
  return {
    get sent() {
      return sent;
    },
    stop: () => clearInterval(timer),
  };
};
const range = (to: number): number[] => Array.from({ length: to }, (_, index) => index);

test('a relay that drains under traffic loses nothing and keeps the order; one that is killed loses what is in flight', async () => {
  await using one = await startRealRelay(['--drain-time', '2s']);
  await using two = await startRealRelay(['--drain-time', '2s']);
  const relays = [one, two];
  const [aKeys, bKeys] = [newKeys(), newKeys()];
  using a = await openPlace(aKeys, bKeys, relays);
  using b = await openPlace(bKeys, aKeys, relays);
  await until('both are on both', () => proven(a.pool, 2) && proven(b.pool, 2));
  const ports = [a.proxy.port, b.proxy.port];
  const traffic = stream(a);
  await until('it flows', () => b.numbers().length > 300);
  const before = a.proxy.relay!;
  const draining = relays[Number(before.slice(-1))]!;
  expect(await draining.stop('SIGTERM')).toBe(0);
  const atEnd = traffic.sent;
  await until('it flows on', () => b.numbers().length > atEnd + 300);
  traffic.stop();
  await until('all have come', () => b.numbers().length === traffic.sent);
  expect(b.numbers()).toEqual(range(traffic.sent));
  expect(a.proxy.relay).not.toBe(before);

  // The first one comes back on the same port; peers stay where they are, until the second is killed.
  await using again = await startRealRelay([], draining.port);
  await until('both are on both again', () => proven(a.pool, 2) && proven(b.pool, 2), 40_000);
  const second = relays.find((relay) => relay !== draining)!;
  const more = stream(a);
  const had = b.wireGuard.got.length;
  await until('it flows', () => b.wireGuard.got.length > had + 300);
  const sentBefore = more.sent;
  const cameBefore = b.wireGuard.got.length;
  const killed = a.proxy.relay;
  let sentWhenKnown = Number.POSITIVE_INFINITY;
  const looking = setInterval(() => {
    if (a.proxy.relay !== killed) sentWhenKnown = Math.min(sentWhenKnown, more.sent);
  }, 1);
  await second.stop('SIGKILL');
  await until('it flows on, long before silence would tell', () => b.wireGuard.got.length > cameBefore + 300, 10_000);
  more.stop();
  clearInterval(looking);
  const last = more.sent - 1;
  await until('the last has come', () => b.numbers().at(-1) === last);
  const came = b.wireGuard.got.length - had;
  // In one gap: what sockets held, and what was sent before the end was known.
  const numbers = b.numbers().slice(had);
  const gaps = numbers.filter((number, index) => index > 0 && number !== numbers[index - 1]! + 1);
  expect(gaps.length).toBeLessThanOrEqual(1);
  expect(sentWhenKnown).toBeLessThan(more.sent);
  for (const firstAfter of gaps) expect(firstAfter).toBeLessThanOrEqual(sentWhenKnown);
  expect(came).toBeGreaterThan(sentBefore);
  expect([a.proxy.port, b.proxy.port]).toEqual(ports);
  expect(again.port).toBe(draining.port);
});

test('proxies keep their ports when their only relay is started anew', async () => {
  const relay = await startRealRelay();
  const [aKeys, bKeys] = [newKeys(), newKeys()];
  using a = await openPlace(aKeys, bKeys, [relay]);
  using b = await openPlace(bKeys, aKeys, [relay]);
  await until('both are proven', () => proven(a.pool, 1) && proven(b.pool, 1));
  await relay.stop('SIGKILL');
  await until('both have lost it', () => !a.pool.isConnected && !b.pool.isConnected);
  const send = (): void => a.wireGuard.socket.send(text('1234567'), a.proxy.port, '127.0.0.1');
  send();
  await until('it is dropped', () => a.pool.tallies.dropped.noRelay === 1);
  await using again = await startRealRelay([], relay.port);
  await until(
    'it flows',
    () => {
      send();
      return b.wireGuard.got.length > 0;
    },
    40_000,
  );
  expect(b.wireGuard.got[0]!.port).toBe(b.proxy.port);
  expect(again.port).toBe(relay.port);
});
