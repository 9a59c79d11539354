import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { BROADCAST, ethernet, icmpv6, packet } from './l2-frames.ts';
import {
  type L2Switch,
  buildSwitch,
  MTU,
  NETWORK,
  outcomeAtPort,
  OWN,
  populate,
  PORT,
  runPort,
  SEGMENT,
  SHOT,
} from './l2-switch.ts';
import type { Flow } from './packets.ts';

/** Which frames are replicated, and how many; that copies arrive is in l2.kernel.spec.ts. */

let l2: L2Switch;

beforeAll(() => void (l2 = buildSwitch()));
beforeEach(() => populate(l2));
afterAll(() => l2[Symbol.dispose]());

const outcome = (data: Uint8Array) => outcomeAtPort(l2, data);
const to = (mac: string, flow: Partial<Flow>): Uint8Array =>
  packet({ from: OWN.mac, to: mac }, { source: OWN.ipv4, destination: '10.9.0.255', ...flow });
const to6 = (mac: string, destination: string): Uint8Array =>
  icmpv6({ from: OWN.mac, to: mac }, { source: OWN.ipv6, destination, message: [128, 0, 0, 0, 0, 0, 0, 0] });

test.each<[string, Uint8Array, 'unknown' | 'broadcast' | 'multicast']>([
  ['unicast without an entry', to('02:00:00:00:00:99', {}), 'unknown'],
  ['a broadcast', to(BROADCAST, {}), 'broadcast'],
  ['a broadcast that is no IP', ethernet({ from: OWN.mac, to: BROADCAST }, 0x88b5, new Uint8Array(46)), 'broadcast'],
  ['an IPv4 group', to('01:00:5e:00:00:09', { destination: '224.0.0.9' }), 'multicast'],
  ['an IPv6 group', to6('33:33:00:01:00:02', 'ff02::1:2'), 'multicast'],
  ['what is for routers', to6('33:33:00:00:00:02', 'ff02::2'), 'multicast'],
  ['an IPv6 group of a wider scope', to6('33:33:00:00:00:01', 'ff05::1'), 'multicast'],
  ['a group without which IPv6 does not work, to everybody’s MAC', to6(BROADCAST, 'ff02::1'), 'broadcast'],
  ['unicast of IPv6 to a group’s MAC', to6('33:33:00:00:00:01', 'fd99::9'), 'multicast'],
])('%s is replicated where the network says so', (_, frame, flag) => {
  expect(outcome(frame)).toEqual([SHOT, { [`drop_${flag}`]: 1 }]);
  l2.networks.set(NETWORK, { mtu: MTU, [flag]: true });
  expect(outcome(frame)).toEqual([SHOT, { [`drop_${flag}`]: 1, replicated: 1 }]);
});

test.each([
  ['33:33:00:00:00:01', 'ff02::1'],
  ['33:33:00:00:00:16', 'ff02::16'],
  ['33:33:ff:12:34:56', 'ff02::1:ff12:3456'],
])('%s, %s, works in every network: IPv6 does not without', (mac, address) => {
  expect(outcome(to6(mac, address))).toEqual([SHOT, { replicated: 1 }]);
});

const replicatedOf = (frames: number): number => {
  for (let sent = 0; sent < frames; sent++) runPort(l2, to(BROADCAST, {}));
  const { replicated = 0, drop_rate: dropped = 0 } = l2.counts();
  expect(replicated + dropped).toBe(frames);
  return replicated;
};

test('a port replicates its burst, and then no more than its rate', () => {
  l2.networks.set(NETWORK, { mtu: MTU, broadcast: true });
  l2.ports.set(PORT, { network: NETWORK, segment: SEGMENT, rate: 1, burst: 5, mac: OWN.mac });
  const replicated = replicatedOf(50);
  expect(replicated).toBeGreaterThanOrEqual(5);
  expect(replicated).toBeLessThan(10);
});

test.each([
  [3, 12],
  [2, 11],
  [0, 3],
])(
  'a frame takes as many tokens as it has copies: %i frames of four copies each fit into a burst of %i',
  (fit, burst) => {
    l2.networks.set(NETWORK, { mtu: MTU, broadcast: true });
    l2.ports.set(PORT, { network: NETWORK, segment: SEGMENT, rate: 1, burst, mac: OWN.mac });
    l2.flood.set(NETWORK, { ports: [PORT], locators: ['fd53:0:0:2::', 'fd53:0:0:3::', 'fd53:0:0:4::'] });
    expect(replicatedOf(10)).toBe(fit);
  },
);

test.each<[string, { readonly rate: number; readonly burst: number }]>([
  ['a rate of 0', { rate: 0, burst: 5 }],
  ['a burst of 0', { rate: 5, burst: 0 }],
])('%s replicates nothing', (_, bucket) => {
  l2.networks.set(NETWORK, { mtu: MTU, broadcast: true });
  l2.ports.set(PORT, { network: NETWORK, segment: SEGMENT, mac: OWN.mac, ...bucket });
  expect(replicatedOf(3)).toBe(0);
});

test('a port without a bucket replicates nothing', () => {
  l2.networks.set(NETWORK, { mtu: MTU, broadcast: true });
  l2.buckets.delete(PORT);
  expect(replicatedOf(3)).toBe(0);
});
