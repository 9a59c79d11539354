import type { DeviceState, PeerState, WireGuardDevice } from '@unbounded/wireguard';
import { describe, expect, test } from 'vitest';
import { createEndpoints, createSessions, isProxied, isPulledAway } from './endpoints.ts';

const relay = { path: 'relay', endpoint: '127.0.0.1:40000', reason: 'unvalidated' } as const;
const direct = { path: 'direct', endpoint: '192.0.2.1:51820', reason: 'validated' } as const;

test.each([
  ['the proxy, as chosen', relay, '127.0.0.1:40000', false],
  ['the proxy on the port of before', relay, '127.0.0.1:40001', true],
  ['the peer itself, though the relay is chosen', relay, '192.0.2.1:51820', true],
  ['none yet', relay, undefined, true],
  ['the peer itself, as chosen', direct, '192.0.2.1:51820', false],
  ['the peer at another address that it called from', direct, '198.51.100.1:9', false],
  ['a proxy, though direct is chosen', direct, '127.0.0.1:40000', true],
  ['a proxy on IPv6, though direct is chosen', direct, '[::1]:40000', true],
  ['none yet, and direct is chosen', direct, undefined, true],
] as const)('WireGuard has %s', (_name, way, endpoint, isPulled) => {
  expect(isPulledAway(endpoint, way)).toBe(isPulled);
});

test('proxies are told by their address', () => {
  expect(['127.0.0.1:1', '[::1]:1', '12.7.0.0:1', '[::10]:1'].map(isProxied)).toEqual([true, true, false, false]);
});

describe('a direct session', () => {
  const SESSION_MS = 180_000;
  const START_MS = Date.parse('2026-01-01T00:00:00Z');
  const open = () => {
    const clock = { wallMs: START_MS, elapsedMs: 1000 };
    const { isDirect: isLive, keepOnly } = createSessions({ now: () => clock.wallMs, elapsed: () => clock.elapsedMs });
    const pass = (ms: number): void => {
      clock.wallMs += ms;
      clock.elapsedMs += ms;
    };
    const peer = (latestHandshakeMs: number | undefined, endpoint = '192.0.2.1:51820') =>
      ({ publicKey: 'k', rxBytes: 0, endpoint, latestHandshakeMs }) as unknown as PeerState;
    return { clock, isLive, keepOnly, pass, peer };
  };

  test('is one with a handshake within three minutes, not by a proxy', () => {
    const { isLive, pass, peer } = open();
    expect(isLive(peer(START_MS - 60_000))).toBe(true);
    expect(isLive(peer(START_MS - 60_000, '127.0.0.1:9'))).toBe(false);
    pass(SESSION_MS - 60_000);
    expect(isLive(peer(START_MS - 60_000))).toBe(false);
    expect(isLive(peer(undefined))).toBe(false);
    expect(open().isLive(peer(START_MS - SESSION_MS))).toBe(false);
  });

  test.each([-3_600_000, 3_600_000])('lasts as long when the wall clock is set by %i ms', (stepMs) => {
    const { clock, isLive, pass, peer } = open();
    const shaken = peer(START_MS);
    expect(isLive(shaken)).toBe(true);
    clock.wallMs += stepMs;
    pass(SESSION_MS - 1);
    expect(isLive(shaken)).toBe(true);
    pass(1);
    expect(isLive(shaken)).toBe(false);
    expect(isLive(peer(clock.wallMs))).toBe(true); // the next handshake is news, whatever time it shows
  });

  test('whose handshake lies in the future does not last for ever', () => {
    const { isLive, pass, peer } = open();
    const ahead = peer(START_MS + 3_600_000);
    expect(isLive(ahead)).toBe(true);
    pass(SESSION_MS);
    expect(isLive(ahead)).toBe(false);
  });

  test('is forgotten when the interface has the peer no more', () => {
    const { clock, isLive, keepOnly, peer } = open();
    const shaken = peer(START_MS);
    expect(isLive(shaken)).toBe(true);
    clock.wallMs += 3_600_000;
    keepOnly(new Set([shaken.publicKey]));
    expect(isLive(shaken)).toBe(true);
    keepOnly(new Set());
    expect(isLive(shaken)).toBe(false); // as one that was never seen: an hour old by the wall clock
  });
});

test('what was received of a peer is forgotten when the interface has it no more', async () => {
  let peers: { publicKey: string; rxBytes: number; endpoint: string }[] = [];
  const endpoints = createEndpoints({
    device: {
      get: async () => ({ peers }) as unknown as DeviceState,
      apply: async () => undefined,
      [Symbol.asyncDispose]: async () => undefined,
    },
    ...{ wayOf: () => undefined, intervalMs: () => 60_000, onSession: () => undefined },
  });
  const readWith = async (...bytes: readonly number[]): Promise<boolean> => {
    peers = bytes.map((rxBytes) => ({ publicKey: 'k', rxBytes, endpoint: '192.0.2.1:51820' }));
    await endpoints.read();
    return endpoints.isHeardDirectly('k', 60_000);
  };
  expect(await readWith(1)).toBe(false);
  expect(await readWith(2)).toBe(true);
  expect(await readWith()).toBe(false);
  expect(await readWith(3)).toBe(false); // the first look at this peer
  await endpoints.stop();
});

describe('a peer that is to be sent to by the relay before its direct way was tried', () => {
  const DIRECT = '192.0.2.1:51820';
  /** Of an interface with one peer, which is sent to directly. @param handshakeAt before which call of `apply` or `get` it is */
  const openInterface = (handshakeAt?: 'get' | 'apply') => {
    const peer = { publicKey: 'k', rxBytes: 0, endpoint: DIRECT, latestHandshakeMs: undefined as number | undefined };
    const shake = (): void => void (peer.latestHandshakeMs = Date.now());
    const device: WireGuardDevice = {
      get: async () => {
        if (handshakeAt === 'get') shake();
        return { peers: [{ ...peer }] } as unknown as DeviceState;
      },
      apply: async ({ peers }) => {
        if (handshakeAt === 'apply') shake();
        for (const change of peers) peer.endpoint = (change as { readonly endpoint: string }).endpoint;
      },
      [Symbol.asyncDispose]: async () => undefined,
    };
    return { peer, device };
  };
  /** What the interface holds when the way has become the relay. */
  const becomesRelay = async (handshakeAt?: 'get' | 'apply'): Promise<{ endpoint: string; sessions: string[] }> => {
    const { peer, device } = openInterface(handshakeAt);
    const sessions: string[] = [];
    let way: typeof relay | { path: 'direct'; endpoint: string; reason: 'handshake' } = relay;
    const endpoints = createEndpoints({
      device,
      wayOf: () => way,
      intervalMs: () => 60_000,
      onSession: (publicKey, endpoint) => {
        sessions.push(endpoint);
        if (way !== relay) return;
        way = { path: 'direct', endpoint, reason: 'handshake' };
        endpoints.write(publicKey);
      },
    });
    endpoints.write('k');
    await new Promise(setImmediate);
    await endpoints.stop();
    return { endpoint: peer.endpoint, sessions };
  };

  test('is sent to by the relay', async () => {
    expect(await becomesRelay()).toEqual({ endpoint: relay.endpoint, sessions: [] });
  });

  test.each(['get', 'apply'] as const)('stays direct when it shakes hands just before the %s', async (moment) => {
    const { endpoint, sessions } = await becomesRelay(moment);
    expect(endpoint).toBe(DIRECT);
    expect(sessions).toContain(DIRECT);
  });
});
