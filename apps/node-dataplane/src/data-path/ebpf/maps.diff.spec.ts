import type { Endpoint, NextHop } from '@unbounded/bpf-maps';
import { expect, test } from 'vitest';
import { compareMaps, type MapContents } from './maps.diff.ts';

const hop = (remote: string, over: Partial<NextHop> = {}): NextHop => ({
  ...{ remote, vni: 1, ifindex: 7, protocol: 'geneve', setKey: true, healthy: true },
  ...over,
});
const endpoint = (remote: string, over: Partial<Endpoint> = {}): Endpoint => ({ ...hop(remote), ...over });
const member = (node: string, remote: string) => ({ node, tier: 0, record: hop(remote) });
const groups = [
  { name: 's2/4', index: 3, family: 4 as const, members: [member('g1', '192.0.2.1'), member('g2', '192.0.2.2')] },
];
const wanted = {
  v4: new Map([
    ['100.64.1.0/24', endpoint('192.0.2.9')],
    ['100.65.0.0/16', endpoint('192.0.2.1', { group: 3 })],
  ]),
  v6: new Map([['fd00::/64', endpoint('2001:db8::9')]]),
  groups,
};
const now = {
  devices: new Map([[7, 'geneve0']]),
  inUse: new Map([['s2/4', new Set(['g1'])]]),
};
const weighted = (remote: string, weight: number) => ({ ...hop(remote), weight });
const whole: MapContents = {
  ...{ v4: wanted.v4, v6: wanted.v6 },
  groups: new Map([[3, [weighted('192.0.2.1', 1), weighted('192.0.2.2', 0)]]]),
};

test('maps as planned are in sync, whatever members carry nothing', () => {
  const entries = compareMaps(wanted, whole, now);
  expect(entries.every(({ state }) => state === 'InSync')).toBe(true);
  expect(entries.map(({ table, key, present }) => [table, key, present])).toEqual([
    ['unbounded_endpoints_v4', '100.64.1.0/24', [{ device: 'geneve0', via: '192.0.2.9', kind: 'geneve' }]],
    ['unbounded_endpoints_v4', '100.65.0.0/16', [{ group: 's2/4' }]],
    ['unbounded_endpoints_v6', 'fd00::/64', [{ device: 'geneve0', via: '2001:db8::9', kind: 'geneve' }]],
    ['unbounded_nexthop_groups', 's2/4', [{ device: 'geneve0', via: '192.0.2.1', kind: 'geneve' }]],
  ]);
});

test('what is taken away, led elsewhere or left over shows', () => {
  const v4 = new Map([
    ['100.65.0.0/16', endpoint('192.0.2.1', { ifindex: 8 })],
    ['203.0.113.0/24', endpoint('192.0.2.9')],
  ]);
  const entries = compareMaps(wanted, { ...whole, v4, groups: new Map([[9, [weighted('192.0.2.1', 1)]]]) }, now);
  expect(entries.flatMap(({ key, state }) => (state === 'InSync' ? [] : [`${key} ${state}`]))).toEqual([
    '100.64.1.0/24 Missing',
    '100.65.0.0/16 Different',
    '203.0.113.0/24 Unwanted',
    's2/4 Missing',
    'group 9 Unwanted',
  ]);
  expect(entries[1]?.present).toEqual([{ device: 'index 8', via: '192.0.2.1', kind: 'geneve' }]);
});

test('a group leads elsewhere when a member carries that should not, or the other way round', () => {
  const bothCarry = { ...whole, groups: new Map([[3, [weighted('192.0.2.1', 1), weighted('192.0.2.2', 1)]]]) };
  expect(compareMaps(wanted, bothCarry, now).at(-1)).toMatchObject({ key: 's2/4', state: 'Different' });
  const unknown = { ...now, inUse: new Map() };
  expect(compareMaps(wanted, whole, unknown).at(-1)).toMatchObject({ key: 's2/4', state: 'InSync' });
});
