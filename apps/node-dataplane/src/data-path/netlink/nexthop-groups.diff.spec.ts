import { NEXTHOP_IDS, ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import type { Nexthop } from '@unbounded/netlink';
import { expect, test } from 'vitest';
import { compareNexthopGroups } from './nexthop-groups.diff.ts';

const id = (at: number): number => NEXTHOP_IDS.first + at;
const own = { protocol: ROUTE_PROTOCOL, flags: 0 };
const hops: Nexthop[] = [
  { ...own, id: id(1), link: 5, gateway: '100.64.0.1', onlink: true },
  { ...own, id: id(2), link: 6 },
];
const member = (node: string, nexthopId: number) => ({ node, tier: 0, nexthopId });
const wanted = {
  nexthops: hops,
  groups: [{ name: 's2/4', id: id(9), family: 4 as const, members: [member('g1', id(1)), member('g2', id(2))] }],
};
const group = (...members: number[]): Nexthop => ({ ...own, id: id(9), group: members.map((at) => ({ id: at })) });
const now = {
  devices: new Map([
    [5, 'gn1'],
    [6, 'wg51820'],
  ]),
  inUse: new Map([['s2/4', new Set(['g1', 'g2'])]]),
};

test('a group has its members by device and address', () => {
  const ways = [{ device: 'gn1', via: '100.64.0.1' }, { device: 'wg51820' }];
  expect(compareNexthopGroups(wanted, [...hops, group(id(2), id(1))], now)).toEqual([
    { table: 'nexthop groups', key: 's2/4', state: 'InSync', wanted: ways, present: ways.toReversed() },
  ]);
});

test('a group that is gone, lacks a carrier or is left over shows; those of others do not', () => {
  const stateOf = (...present: Nexthop[]): string[] =>
    compareNexthopGroups(wanted, [...hops, ...present], now).map(({ key, state }) => `${key} ${state}`);
  expect(stateOf()).toEqual(['s2/4 Missing']);
  expect(stateOf(group(id(1)))).toEqual(['s2/4 Different']);
  expect(stateOf(group(id(1), id(2)), { ...group(id(1)), id: id(10) })).toEqual([
    's2/4 InSync',
    `group ${id(10)} Unwanted`,
  ]);
  expect(stateOf(group(id(1), id(2)), { ...group(id(1)), id: 7, protocol: 4 })).toEqual(['s2/4 InSync']);
});

test('a group without anybody who carries leads nowhere, and is as planned', () => {
  const nowhere: Nexthop = { ...own, id: NEXTHOP_IDS.last, blackhole: true };
  const nobody = { ...now, inUse: new Map([['s2/4', new Set<string>()]]) };
  expect(compareNexthopGroups(wanted, [...hops, nowhere, group(nowhere.id)], nobody)).toEqual([
    { table: 'nexthop groups', key: 's2/4', state: 'InSync', wanted: [], present: [] },
  ]);
});
