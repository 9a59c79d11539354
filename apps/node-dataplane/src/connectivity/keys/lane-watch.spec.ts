import type { NeutralPlan } from '../../data-path/kernel-plan.ts';
import type { DeviceState } from '@unbounded/wireguard';
import { beforeEach, expect, test } from 'vitest';
import { createLaneWatch, type LaneWatch } from './lane-watch.ts';

let clockMs: number;
let lanes: LaneWatch;
beforeEach(() => {
  clockMs = 1_000_000;
  lanes = createLaneWatch(() => clockMs);
});

const peer = (node: string, publicKey: string) => ({ node, publicKey, allowedIps: [] });
const planOf = (interfaces: Record<string, ReturnType<typeof peer>[]>): NeutralPlan =>
  ({
    wireGuard: Object.entries(interfaces).map(([name, peers]) => ({ name, listenPort: 1, mtuBytes: 1420, peers })),
  }) as unknown as NeutralPlan;
/** b has two lanes, c has one. */
const rotating = planOf({ wg1: [peer('b', 'kb'), peer('c', 'kc')], wg2: [peer('b', 'kb')] });
const atRest = planOf({ wg2: [peer('b', 'kb'), peer('c', 'kc')] });

type Seen = Record<string, readonly [rxBytes: number, handshakeMs?: number | undefined]>;
const states = (seen: Record<string, Seen>): Map<string, DeviceState> =>
  new Map(
    Object.entries(seen).map(([name, peers]) => [
      name,
      {
        listenPort: 1,
        fwmark: 0,
        peers: Object.entries(peers).map(([publicKey, [rxBytes, latestHandshakeMs]]) => ({
          publicKey,
          rxBytes,
          txBytes: 0,
          allowedIps: [],
          persistentKeepaliveSeconds: 0,
          hasPresharedKey: false,
          ...(latestHandshakeMs === undefined ? {} : { latestHandshakeMs }),
        })),
      },
    ]),
  );

test('handshakes count on links that have several lanes, and nothing is kept of the others', () => {
  expect(lanes.observe(rotating, states({ wg1: { kb: [9, 1], kc: [9, 1] }, wg2: { kb: [0] } }))).toBe(true);
  expect([...lanes.established]).toEqual(['wg1 kb']);
  expect(lanes.observe(rotating, states({ wg1: { kb: [9, 1] }, wg2: { kb: [5, 1] } }))).toBe(true);
  expect([...lanes.established].sort()).toEqual(['wg1 kb', 'wg2 kb']);
  expect(lanes.observe(rotating, states({ wg1: { kb: [9, 1] }, wg2: { kb: [6, 1] } }))).toBe(false);
  expect(lanes.observe(atRest, states({ wg2: { kb: [7, 1], kc: [9, 1] } }))).toBe(true);
  expect([...lanes.established]).toEqual([]);
});

test('a lane that was established is so while its process does not answer, until it goes', () => {
  lanes.observe(rotating, states({ wg2: { kb: [5, 1] } }));
  expect(lanes.observe(rotating, new Map())).toBe(false);
  expect(lanes.seen('wg2 kb', 0).established).toBe(true);
});

test('a lane is quiet when nothing came over it for long enough, counted from the first look', () => {
  const look = (rxBytes: number): boolean => {
    lanes.observe(rotating, states({ wg1: { kb: [rxBytes, 1] } }));
    return lanes.seen('wg1 kb', 100).quiet;
  };
  expect(look(10)).toBe(false);
  clockMs += 100;
  expect(look(10)).toBe(true);
  expect(look(11)).toBe(false);
  clockMs += 99;
  expect(look(11)).toBe(false);
  expect(lanes.seen('wg9 other', 100).quiet).toBe(false);
});

test('a node is alive as long as there are new handshakes on any of its lanes, whatever the machine’s clock says', () => {
  const see = (first: number, second?: number): void =>
    void lanes.observe(rotating, states({ wg1: { kb: [1, first] }, wg2: { kb: [1, second] } }));
  see(7);
  expect([lanes.isAlive('b', 100), lanes.isAlive('c', 100)]).toEqual([true, false]);
  clockMs += 101;
  see(7);
  expect(lanes.isAlive('b', 100)).toBe(false);
  see(7, 3);
  expect(lanes.isAlive('b', 100)).toBe(true);
  clockMs += 101;
  see(8, 3);
  expect(lanes.isAlive('b', 100)).toBe(true);
});
