import { type MissedEchoes, NEW_PEER, NOTICE_BYTES, PROBE_BYTES } from '@unbounded/health';
import type { ProbePlan } from '@unbounded/topology';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { peerId } from './messages.ts';
import { createPeers, type Peers } from './peers.ts';

const probe = (changes: Partial<ProbePlan> = {}): ProbePlan => ({
  node: 'g1',
  publicKey: 'key',
  family: 4,
  localAddress: '100.65.1.1',
  address: '100.65.2.1',
  intervalMs: 1000,
  detectMultiplier: 3,
  ...changes,
});

let sentBytes: number[];
let derivedFrom: string[];
let heard: boolean[];
let misses: MissedEchoes | undefined;
let peers: Peers;

beforeEach(() => {
  vi.useFakeTimers();
  [sentBytes, derivedFrom, heard, misses] = [[], [], [], undefined];
  peers = createPeers({
    file: { known: new Map(), nonce: 1n, save: () => undefined, problems: () => [], settled: async () => undefined },
    deriveKeys: ({ publicKey, nextPublicKey }) => {
      derivedFrom.push(`${publicKey} ${nextPublicKey ?? '-'}`);
      return { request: () => new Uint8Array(16), combinations: [] };
    },
    transmit: ({ size }) => void sentBytes.push(size),
    onVerdict: () => undefined,
    onPathMtu: () => undefined,
    onTold: (_, { knowsNextKey, missesEchoes }) => void heard.push(knowsNextKey || missesEchoes !== undefined),
    missesEchoes: () => misses,
  });
});
afterEach(() => {
  peers.stop();
  vi.useRealTimers();
});

/** Probes of health in so many seconds. */
const probesIn = (seconds: number): number => {
  sentBytes = [];
  vi.advanceTimersByTime(seconds * 1000);
  return sentBytes.filter((size) => size === PROBE_BYTES).length;
};

test('a peer is probed at the interval of its plan, and settings that change reach the probing that goes on', () => {
  peers.ensure([probe({ intervalMs: 500 })], 1500);
  const session = peers.get('g1/IPv4')?.session;
  expect(probesIn(10)).toBeGreaterThanOrEqual(19);
  peers.ensure([probe({ intervalMs: 5000, detectMultiplier: 7 })], 1500);
  expect(probesIn(20)).toBeLessThanOrEqual(5);
  expect(peers.get('g1/IPv4')?.session).toBe(session); // what is known of the peer stays
  expect(session?.plan).toMatchObject({ intervalMs: 5000, detectMultiplier: 7 });
});

test('who is planned no more is probed no more, and is new when it comes back', () => {
  const plan = probe();
  peers.ensure([plan], 1500);
  const before = peers.get(peerId(plan))?.session;
  expect(peers.ensure([], 1500).gone).toEqual([peerId(plan)]);
  expect(probesIn(5)).toBe(0);
  peers.ensure([plan], 1500);
  expect(peers.get(peerId(plan))?.session).not.toBe(before);
  expect(peers.verdicts().get(peerId(plan))?.state).toBe(NEW_PEER.state);
});

test('keys are derived anew when those of the peer change, or our own, and never else', () => {
  for (const changes of [{}, {}, { nextPublicKey: 'b' }, { nextPublicKey: 'b' }, { publicKey: 'b' }])
    peers.ensure([probe(changes)], 1500);
  expect(derivedFrom).toEqual(['key -', 'key b', 'b -']);
  peers.renewKeys();
  expect(derivedFrom).toEqual(['key -', 'key b', 'b -', 'b -']);
});

test('that a peer has heard of our next key is told once, and no more when our keys are others', () => {
  peers.ensure([probe()], 1500);
  const peer = peers.get('g1/IPv4')!;
  for (const isOurNext of [false, true, true]) peer.onRequest({ knowsNextKey: isOurNext, missesEchoes: undefined });
  peers.renewKeys();
  expect(heard).toEqual([true, false]);
});

test('a peer is told, with every probe, that no echo through it comes back', () => {
  peers.ensure([probe()], 1500);
  expect(probesIn(3)).toBeGreaterThanOrEqual(2);
  misses = 'all';
  probesIn(3);
  expect(sentBytes.filter((bytes) => bytes === PROBE_BYTES + NOTICE_BYTES).length).toBeGreaterThanOrEqual(2);
});

test('what a peer misses is told once, also that it does not any more', () => {
  peers.ensure([probe()], 1500);
  const peer = peers.get('g1/IPv4')!;
  for (const missesEchoes of [undefined, 'here', 'here', undefined] as const)
    peer.onRequest({ knowsNextKey: false, missesEchoes });
  expect(heard).toEqual([true, false]);
});
