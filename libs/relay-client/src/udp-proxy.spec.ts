import { createLogger } from '@unbounded/telemetry';
import { expect, test } from 'vitest';

import type { PeerSource } from './pool.ts';
import { FakeClock } from './test/fake-clock.ts';
import { keyOf } from './test/test-client.ts';
import { until } from './test/until.ts';
import { startStandIn } from './test/wireguard-stand-in.ts';
import { UdpProxy, type UdpProxyOptions } from './udp-proxy.ts';

/** Relays of which the test is the other end. */
const standInRelays = () => {
  const sent: Buffer[] = [];
  const peer = { fromPeer: (_payload: Buffer): void => {}, isClosed: false };
  const source: PeerSource = {
    open: (_key, onPacket) => {
      peer.fromPeer = onPacket;
      return {
        send: (payload) => sent.push(Buffer.from(payload)) > 0,
        relay: 'r',
        tryAnother: () => {},
        close: () => {
          peer.isClosed = true;
        },
      };
    },
  };
  return { source, sent, peer };
};
const openProxy = async (options: Partial<UdpProxyOptions> & Pick<UdpProxyOptions, 'wireGuardPort'>) => {
  const relays = standInRelays();
  const proxy = await UdpProxy.open({ relays: relays.source, key: keyOf('peer'), rebindMs: 1, ...options });
  return { proxy, ...relays, [Symbol.dispose]: () => proxy.close() };
};
const text = (payload: Uint8Array): string => Buffer.from(payload).toString();

test.each([
  [4, '127.0.0.1'],
  [6, '::1'],
] as const)('IPv%i: packets go between WireGuard and relays, from and to one port', async (family, address) => {
  using wireGuard = await startStandIn(0, address);
  using open = await openProxy({ wireGuardPort: wireGuard.port, family });
  const { proxy, sent, peer } = open;
  expect(proxy.endpoint).toEqual({ address, port: proxy.port });
  wireGuard.socket.send('up', proxy.port, address);
  await until('up', () => sent.length === 1);
  peer.fromPeer(Buffer.from('down'));
  peer.fromPeer(Buffer.alloc(0));
  peer.fromPeer(Buffer.alloc(65_503));
  await until('down', () => wireGuard.got.length === 3);
  expect(wireGuard.got.map(({ payload, port }) => [payload.length, port])).toEqual(
    [4, 0, 65_503].map((size) => [size, proxy.port]),
  );
  await until('they are counted', () => proxy.tallies.toWireGuard === 3);
  expect([text(sent[0]!), proxy.relay, proxy.tallies.toRelay, proxy.tallies.rebinds]).toEqual(['up', 'r', 1, 0]);
});

test('of free ports one is taken that suits; where none does, any', async () => {
  using wireGuard = await startStandIn();
  const isEven = (port: number): boolean => port % 2 === 0;
  for (let round = 0; round < 8; round++) {
    using open = await openProxy({ wireGuardPort: wireGuard.port, suits: isEven });
    expect(isEven(open.proxy.port)).toBe(true);
  }
  using open = await openProxy({ wireGuardPort: wireGuard.port, suits: () => false });
  expect(open.proxy.port).toBeGreaterThan(0);
});

test('what does not come from WireGuard’s port is not taken', async () => {
  using wireGuard = await startStandIn();
  using stranger = await startStandIn();
  using open = await openProxy({ wireGuardPort: wireGuard.port });
  stranger.socket.send('forged', open.proxy.port, '127.0.0.1');
  await new Promise((resolve) => stranger.socket.send('forged', open.proxy.port, '127.0.0.1', resolve));
  wireGuard.socket.send('real', open.proxy.port, '127.0.0.1');
  await until('the real one', () => open.sent.length > 0);
  expect(open.sent.map(text)).toEqual(['real']);
});

test('half a second of packets that come while the process is held up is not lost', async () => {
  using wireGuard = await startStandIn();
  using open = await openProxy({ wireGuardPort: wireGuard.port });
  for (let number = 0; number < 500; number++) wireGuard.socket.send(`${number}`, open.proxy.port, '127.0.0.1');
  await until('all have come', () => open.sent.length === 500);
  expect(text(open.sent.at(-1)!)).toBe('499');
});

test('a hundred fresh sockets later the port is the same, and packets go both ways', async () => {
  const first = await startStandIn();
  const { port } = first;
  using open = await openProxy({ wireGuardPort: port });
  const { proxy, peer, sent } = open;
  const local = proxy.port;
  first.close();
  let packets = 0;
  await until('so many have been needed', () => {
    peer.fromPeer(Buffer.of(4, packets++));
    return proxy.tallies.rebinds >= 100;
  });
  expect(Object.keys(proxy.tallies.errors)).toEqual(['ECONNREFUSED']);
  using wireGuard = await startStandIn(port);
  await until('WireGuard hears it', () => {
    peer.fromPeer(Buffer.from('back'));
    return wireGuard.got.some(({ payload }) => text(payload) === 'back');
  });
  expect([...new Set(wireGuard.got.map((packet) => packet.port))]).toEqual([local]);
  wireGuard.socket.send('up', local, '127.0.0.1');
  await until('and is heard', () => sent.some((payload) => text(payload) === 'up'));
  expect(proxy.port).toBe(local);
}, 20_000);

test('fresh sockets come at a bounded rate, and errors are logged once a second', async () => {
  const gone = await startStandIn();
  gone.close();
  const clock = new FakeClock();
  const lines: string[] = [];
  const logger = createLogger({ name: 'test', destination: { write: (line) => void lines.push(line) } });
  using open = await openProxy({ wireGuardPort: gone.port, clock, rebindMs: 100, logger });
  const { proxy, peer } = open;
  const fail = async (): Promise<void> => {
    const before = clock.pending.length;
    await until('the socket has failed', () => {
      peer.fromPeer(Buffer.of(4));
      return clock.pending.length > before;
    });
  };
  await fail();
  expect(clock.pending).toEqual([100]);
  for (let count = 0; count < 50; count++) peer.fromPeer(Buffer.of(4));
  expect(proxy.tallies.rebinds).toBe(0);
  expect(proxy.tallies.dropped).toBeGreaterThanOrEqual(50);
  for (let round = 1; round <= 9; round++) {
    clock.pass(100);
    await fail();
    expect(proxy.tallies.rebinds).toBe(round);
  }
  expect(lines).toHaveLength(1);
  clock.pass(100);
  await fail();
  expect(lines).toHaveLength(2);
  expect(JSON.parse(lines[1]!)).toMatchObject({ code: 'ECONNREFUSED', port: proxy.port });
});

test('a port that somebody takes in between is taken back as soon as it is free', async () => {
  const gone = await startStandIn();
  gone.close();
  const clock = new FakeClock();
  using open = await openProxy({ wireGuardPort: gone.port, clock, rebindMs: 100 });
  const { proxy, peer } = open;
  await until('it has failed', () => {
    peer.fromPeer(Buffer.of(4));
    return clock.pending.length > 0;
  });
  const thief = await startStandIn(proxy.port);
  for (let round = 1; round <= 3; round++) {
    clock.pass(100);
    await until(
      'it has tried',
      () => (proxy.tallies.errors['EADDRINUSE'] ?? 0) === round && clock.pending.length === 1,
    );
  }
  thief.close();
  using wireGuard = await startStandIn(gone.port);
  clock.pass(100);
  await until('it has its port', () => {
    peer.fromPeer(Buffer.from('again'));
    return wireGuard.got.some(({ port }) => port === proxy.port);
  });
  expect(proxy.tallies.rebinds).toBe(4);
});

test('a port that was said is used, and one that is taken is refused', async () => {
  using wireGuard = await startStandIn();
  using open = await openProxy({ wireGuardPort: wireGuard.port });
  const { port } = open.proxy;
  await expect(openProxy({ wireGuardPort: wireGuard.port, port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
  open.proxy.close();
  expect(open.peer.isClosed).toBe(true);
  using again = await openProxy({ wireGuardPort: wireGuard.port, port });
  expect(again.proxy.port).toBe(port);
});

test('a peer that is open already leaves no socket behind', async () => {
  using wireGuard = await startStandIn();
  const relays: PeerSource = {
    open: () => {
      throw new Error('open already');
    },
  };
  using other = await startStandIn();
  const { port } = other;
  other.close();
  await expect(UdpProxy.open({ relays, key: keyOf('peer'), wireGuardPort: wireGuard.port, port })).rejects.toThrow(
    'open already',
  );
  using free = await startStandIn(port);
  expect(free.port).toBe(port);
});

test('closing while a fresh socket is on its way leaves none behind', async () => {
  const gone = await startStandIn();
  gone.close();
  const clock = new FakeClock();
  const { proxy, peer } = await openProxy({ wireGuardPort: gone.port, clock, rebindMs: 100 });
  await until('it has failed', () => {
    peer.fromPeer(Buffer.of(4));
    return clock.pending.length > 0;
  });
  clock.pass(100);
  proxy.close();
  peer.fromPeer(Buffer.of(4));
  let free: Awaited<ReturnType<typeof startStandIn>> | undefined;
  for (let attempt = 0; free === undefined && attempt < 100; attempt++)
    free = await startStandIn(proxy.port).catch(() => undefined);
  expect(free?.port).toBe(proxy.port);
  free?.close();
  expect(clock.pending).toEqual([]);
});
