import { CAPABILITY, encodeData, PEER_GONE } from '@unbounded/relay-protocol';
import { expect, test } from 'vitest';

import { STABLE_MS } from './backoff.ts';
import { dialWith } from './dial.ts';
import { type PoolOptions, RelayPool } from './pool.ts';
import { ranked, pairOf } from './rendezvous.ts';
import { type ExtendedServer, startExtendedServer } from './test/extended-server.ts';
import { FakeClock } from './test/fake-clock.ts';
import { type Keys, keyOf, local, newKeys } from './test/test-client.ts';
import { until } from './test/until.ts';

const packet = (number: number): Buffer => Buffer.from([4, number >> 8, number & 0xff]);

interface Fixture extends AsyncDisposable {
  readonly pool: RelayPool;
  readonly clock: FakeClock;
  readonly identity: Keys;
  readonly servers: readonly ExtendedServer[];
  /** The server of a relay's name. */
  readonly serverOf: (name: string | undefined) => ExtendedServer;
  readonly isConnected: (name: string) => boolean;
}

/** Always the same, so that peers are always spread alike: with a random key all may prefer one relay. */
const OWN_PRIVATE_KEY = Buffer.alloc(32, 7);

/** A pool over so many relays. */
const setUp = async (count: number, options: Partial<PoolOptions> = {}): Promise<Fixture> => {
  const servers = await Promise.all(Array.from({ length: count }, () => startExtendedServer()));
  const clock = new FakeClock();
  const identity = newKeys(OWN_PRIVATE_KEY);
  const services = servers.map((server, index) => ({ name: `relay-${index}`, ways: [local(server.port)] }));
  const pool = new RelayPool({ identity, services, clock, random: () => 1, ...options });
  await until('all are connected', () =>
    pool.state.relays.every(({ phase, rttMs }) => phase === 'connected' && rttMs !== undefined),
  );
  return {
    pool,
    clock,
    identity,
    servers,
    serverOf: (name) => servers[Number(name?.slice('relay-'.length))]!,
    isConnected: (name) => pool.state.relays.some((relay) => relay.name === name && relay.phase === 'connected'),
    [Symbol.asyncDispose]: async () => {
      pool.close();
      for (const server of servers) await server[Symbol.asyncDispose]();
    },
  };
};
const numbersAt = (server: ExtendedServer): number[] =>
  server.connections.flatMap(({ data }) => data).map((payload) => payload.readUInt16BE(1));
const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, index) => from + index);

test('each peer goes by one relay, the one that both ends prefer, and all relays are used', async () => {
  await using fixture = await setUp(3);
  const { pool, identity, servers } = fixture;
  const peers = Array.from({ length: 30 }, (_, index) => keyOf(`peer ${index}`));
  for (const [index, key] of peers.entries()) {
    const peer = pool.open(key, () => {});
    expect(peer.relay).toBe(ranked(pairOf(key, identity.publicKey), ['relay-0', 'relay-1', 'relay-2'])[0]);
    for (let count = 0; count < 5; count++) expect(peer.send(packet(index))).toBe(true);
  }
  await until('all have come', () => servers.flatMap(numbersAt).length === 150);
  for (const server of servers) {
    const numbers = numbersAt(server);
    expect(new Set(numbers).size).toBeGreaterThan(3);
    expect(numbers.length).toBe(5 * new Set(numbers).size);
  }
});

test('a relay that is lost moves its own peers only, and they do not move back', async () => {
  await using fixture = await setUp(3);
  const { pool, clock, serverOf } = fixture;
  const peers = Array.from({ length: 30 }, (_, index) => pool.open(keyOf(`peer ${index}`), () => {}));
  const before = peers.map(({ relay }) => relay);
  serverOf('relay-1').connections[0]!.socket.destroy();
  await until('it is lost', () => !fixture.isConnected('relay-1'));
  const after = peers.map(({ relay }) => relay);
  expect(
    after.every((relay, index) => (before[index] === 'relay-1' ? relay !== 'relay-1' : relay === before[index])),
  ).toBe(true);
  clock.pass(1000);
  await until('it is back', () => fixture.isConnected('relay-1'));
  expect(peers.map(({ relay }) => relay)).toEqual(after);
});

test('a relay that says that a peer is not there loses that peer, and only what concerns it is believed', async () => {
  await using fixture = await setUp(2);
  const { pool, serverOf } = fixture;
  const [peer, other] = [pool.open(keyOf('a'), () => {}), pool.open(keyOf('b'), () => {})];
  const first = peer.relay!;
  const othersRelay = other.relay;
  const say = (relay: string): void =>
    serverOf(relay).connections[0]!.say({ kind: 'peerGone', key: keyOf('a'), reason: PEER_GONE.notHere });
  for (let times = 0; times < 3; times++) say(first);
  await until('it has moved', () => peer.relay !== first);
  const second = peer.relay!;
  say(first); // about packets that went there before
  serverOf(first).connections[0]!.say({ kind: 'peerGone', key: keyOf('nobody'), reason: 0 });
  say(second);
  await until('missing everywhere: where that was longest ago', () => peer.relay === first);
  expect(other.relay).toBe(othersRelay);
});

test('who can tell that nothing comes back over a relay gets another one', async () => {
  await using fixture = await setUp(2);
  const peer = fixture.pool.open(keyOf('a'), () => {});
  const first = peer.relay;
  peer.tryAnother();
  expect(peer.relay).not.toBe(first);
  peer.tryAnother();
  expect(peer.relay).toBe(first);
  peer.close();
  peer.tryAnother();
  expect(peer.relay).toBeUndefined();
});

test('keys that are wrong are said at once', () => {
  const identity = newKeys();
  expect(() => new RelayPool({ identity: { publicKey: Buffer.alloc(3) }, services: [] })).toThrow(
    'publicKey has 3 bytes',
  );
  expect(() => new RelayPool({ identity, services: [], pinnedKey: Buffer.alloc(33) })).toThrow(
    'pinnedKey has 33 bytes',
  );
});

test('a relay that is about to end gives its peers to the others, in order and without loss', async () => {
  await using fixture = await setUp(2);
  const { pool, clock, serverOf } = fixture;
  const peers = Array.from({ length: 10 }, (_, index) => pool.open(keyOf(`peer ${index}`), () => {}));
  const peer = peers.find(({ relay }) => relay === 'relay-0')!;
  const [from, to] = [serverOf('relay-0'), serverOf('relay-1')];
  for (let number = 0; number < 50; number++) peer.send(packet(number));
  clock.pass(STABLE_MS); // a relay of which nothing is to be feared
  from.connections[0]!.say({ kind: 'drain', reconnectInMs: 100, tryForMs: 1000 });
  await until('it knows', () => clock.pending[0] === 100);
  from.manners.answersPings = false;
  expect(peer.relay).toBe('relay-0');
  clock.pass(100);
  expect(peers.every(({ relay }) => relay === 'relay-1')).toBe(true);
  for (let number = 50; number < 60; number++) expect(peer.send(packet(number))).toBe(true);
  // A ping of before the drain may have come already: the one that counts comes behind all packets.
  const isAsked = (): boolean => numbersAt(from).length === 50 && from.connections[0]!.kinds.at(-1) === 'ping';
  await until('the first is asked whether it has taken all', isAsked);
  expect([numbersAt(from), numbersAt(to)]).toEqual([range(0, 50), []]);
  clock.pass(2000);
  await until('they are there', () => numbersAt(to).length === 10);
  expect(numbersAt(to)).toEqual(range(50, 60));
});

test('a relay that takes nothing holds nobody up who goes by another one', async () => {
  await using fixture = await setUp(2);
  const { pool, serverOf } = fixture;
  const peers = Array.from({ length: 20 }, (_, index) => pool.open(keyOf(`peer ${index}`), () => {}));
  const slow = peers.find(({ relay }) => relay === 'relay-0')!;
  const fine = peers.find(({ relay }) => relay === 'relay-1')!;
  serverOf('relay-0').connections[0]!.socket.pause();
  const queued = (): number => pool.state.relays.find(({ name }) => name === 'relay-0')!.queued;
  while (pool.tallies.dropped.slowRelay === 0) {
    for (let count = 0; count < 100; count++) slow.send(Buffer.alloc(1400, 4));
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(queued()).toBeLessThan(600 * 1024);
  for (let number = 0; number < 1000; number++) fine.send(packet(number));
  await until('all have come', () => numbersAt(serverOf('relay-1')).length === 1000);
  expect(numbersAt(serverOf('relay-1'))).toEqual(range(0, 1000));
});

test('packets of peers come to who has opened them, over any relay; of others they are counted', async () => {
  await using fixture = await setUp(2);
  const { pool, servers } = fixture;
  const got: string[] = [];
  const peer = pool.open(keyOf('a'), (payload) => got.push(payload.toString()));
  expect(() => pool.open(keyOf('a'), () => {})).toThrow('open already');
  expect(() => pool.open(Buffer.alloc(31), () => {})).toThrow('31 bytes');
  for (const [index, server] of servers.entries()) {
    server.connections[0]!.socket.write(encodeData(keyOf('stranger'), Buffer.from('x')));
    server.connections[0]!.socket.write(encodeData(keyOf('a'), Buffer.from(`by ${index}`)));
  }
  await until('both', () => got.length === 2);
  expect(pool.tallies.dropped.unknownPeer).toBe(2);
  peer.close();
  peer.close();
  expect([peer.send(packet(0)), pool.state.peers]).toEqual([false, 0]);
  pool.open(keyOf('a'), () => {}).close();
});

test('without any relay a send says so; peers get one as soon as there is one', async () => {
  await using server = await startExtendedServer();
  using pool = new RelayPool({ identity: newKeys(), services: [] });
  const peer = pool.open(keyOf('a'), () => {});
  expect([peer.send(packet(0)), peer.relay, pool.isConnected]).toEqual([false, undefined, false]);
  pool.setServices([{ name: 'late', ways: [local(server.port)] }]);
  await until('it has one', () => peer.relay === 'late');
  expect(peer.send(packet(1))).toBe(true);
  await until('it comes', () => numbersAt(server).length === 1);
});

/** A pool that finds its relays under a name; 127.0.0.n is relay n, whichever server that is. */
const named = async (count: number, first: string[]) => {
  // Without pings: the test lets minutes pass between two words.
  const manners = { capabilities: CAPABILITY.peerGone };
  const servers = await Promise.all(Array.from({ length: count }, () => startExtendedServer(manners)));
  const clock = new FakeClock();
  const dns = { answer: first as string[] | Error };
  const dial = dialWith();
  const pool = new RelayPool({
    identity: newKeys(),
    services: [{ name: 'relays', ways: [{ host: 'relay.example', port: 3478, isTls: false }] }],
    clock,
    random: () => 0,
    resolve: async () => {
      if (dns.answer instanceof Error) throw dns.answer;
      return dns.answer;
    },
    dial: ({ host }) => dial(local(servers[Number(host.split('.').at(-1)) - 1]?.port ?? servers[0]!.port)),
  });
  const phases = (): string[] => pool.state.relays.map(({ name, phase }) => `${name} ${phase}`);
  const look = async (answer: string[] | Error): Promise<void> => {
    dns.answer = answer;
    clock.pass(30_000);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    servers,
    clock,
    pool,
    phases,
    look,
    [Symbol.asyncDispose]: async () => {
      pool.close();
      for (const server of servers) await server[Symbol.asyncDispose]();
    },
  };
};

const connected = (name: string): string => `${name}:3478 connected`;

test('replicas come and go with the name’s answers; an empty or failed answer changes nothing', async () => {
  await using fixture = await named(3, ['127.0.0.1', '127.0.0.2']);
  const { pool, clock, phases, look } = fixture;
  const both = [connected('127.0.0.1'), connected('127.0.0.2')];
  await until('both are connected', () => String(phases()) === String(both));
  const peers = Array.from({ length: 20 }, (_, index) => pool.open(keyOf(`peer ${index}`), () => {}));
  await look([]);
  await look(new Error('SERVFAIL'));
  expect(phases()).toEqual(both);
  await look(['127.0.0.2', '127.0.0.3']);
  await until('the third is connected', () => phases().includes(connected('127.0.0.3')));
  // The first is read on for a while, for those that have not heard yet; nothing is sent to it.
  expect(phases()).toContain('127.0.0.1:3478 leaving');
  expect(new Set(peers.map(({ relay }) => relay))).toEqual(new Set(['127.0.0.2:3478']));
  clock.pass(15_000);
  expect(phases()).toEqual([connected('127.0.0.2'), connected('127.0.0.3')]);
  await until('it is ended', () => fixture.servers[0]!.connections[0]!.socket.readableEnded);
});

test('a replica that comes back before it was left keeps its connection', async () => {
  await using fixture = await named(2, ['127.0.0.1', '127.0.0.2']);
  const { phases, clock, pool } = fixture;
  const both = [connected('127.0.0.1'), connected('127.0.0.2')];
  await until('both are connected', () => String(phases()) === String(both));
  const ways = (host: string) => [{ host, port: 3478, isTls: false }];
  pool.setServices([{ name: '127.0.0.2:3478', ways: ways('127.0.0.2') }]);
  expect(phases()[0]).toBe('127.0.0.1:3478 leaving');
  clock.pass(14_999);
  pool.setServices([{ name: 'relays', ways: ways('relay.example') }]);
  await until('both are again', () => phases().toSorted().join() === both.join());
  clock.pass(60_000);
  expect(phases().toSorted()).toEqual(both);
  expect(fixture.servers.map(({ connections }) => connections.length)).toEqual([1, 1]);
});

test('the last relay that works is not left, whatever is said', async () => {
  await using fixture = await named(1, ['127.0.0.1']);
  const { clock, phases, pool, servers } = fixture;
  await until('connected', () => phases()[0] === connected('127.0.0.1'));
  const peer = pool.open(keyOf('a'), () => {});
  pool.setServices([]);
  for (let minute = 0; minute < 10; minute++) clock.pass(60_000);
  expect([phases(), peer.send(packet(1))]).toEqual([['127.0.0.1:3478 leaving'], true]);
  pool.setServices([{ name: 'next', ways: [local(servers[0]!.port)] }]);
  await until('the next is connected', () => phases().includes('next connected'));
  expect(peer.relay).toBe('next');
  clock.pass(15_000);
  expect(phases()).toEqual(['next connected']);
});

test('a name with public addresses is one relay', async () => {
  await using fixture = await named(1, ['203.0.113.1', '203.0.113.2']);
  const { phases, look } = fixture;
  await until('connected', () => phases()[0] === connected('relay.example'));
  await look(['203.0.113.7']);
  expect(phases()).toEqual([connected('relay.example')]);
  expect(fixture.servers[0]!.connections).toHaveLength(1);
});

test('a balancer’s name is one relay, also when its addresses are private', async () => {
  await using fixture = await named(1, ['127.0.0.1']);
  const { phases, pool } = fixture;
  const ways = [{ host: 'balancer.example', port: 3478, isTls: false }];
  pool.setServices([{ name: 'managed', ways, isBalanced: true }]);
  await until('it is connected', () => phases().join().includes('managed connected'));
  expect(pool.state.relays.filter(({ phase }) => phase !== 'leaving')).toHaveLength(1);
});
