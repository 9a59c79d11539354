import type { Route, RouteSpec } from '@unbounded/netlink';
import { expect, test } from 'vitest';
import { compareRoutes } from './route-entries.diff.ts';

const names = { devices: new Map([[5, 'wg51820']]), groups: new Map([[70, 's2/4']]) };
const common = { table: 252, protocol: 81, scope: 'global', flags: 0 } as const;
const wanted: RouteSpec[] = [
  { ...common, dst: '100.64.1.0/24', link: 5, mtu: 1420 },
  { ...common, dst: '100.65.0.0/16', nexthopId: 70, mtu: 1420 },
  { ...common, dst: '100.66.0.0/16', type: 'unreachable' },
  { ...common, dst: '100.67.0.0/16', nexthops: [{ gateway: '192.0.2.1' }, { gateway: '192.0.2.2' }] },
];
const seen = (route: RouteSpec, over: Partial<Route> = {}): Route =>
  ({ type: 'unicast', ...route, ...over }) as unknown as Route;

test('routes say device, next hop or group, and what they are where they lead nowhere', () => {
  const entries = compareRoutes(
    wanted,
    wanted.map((route) => seen(route)),
    names,
  );
  expect(entries.map(({ table, key, state, wanted: ways, present }) => [table, key, state, ways, present])).toEqual(
    [
      ['100.64.1.0/24', [{ device: 'wg51820', mtuBytes: 1420 }]],
      ['100.65.0.0/16', [{ group: 's2/4', mtuBytes: 1420 }]],
      ['100.66.0.0/16', [{ kind: 'unreachable' }]],
      ['100.67.0.0/16', [{ via: '192.0.2.1' }, { via: '192.0.2.2' }]],
    ].map(([key, ways]) => ['routes 252', key, 'InSync', ways, ways]),
  );
});

test('a route that is gone, leads elsewhere or is left over shows', () => {
  const left = seen({ ...common, dst: '203.0.113.0/24', link: 9 });
  const entries = compareRoutes(wanted, [seen(wanted[1]!, { nexthopId: 71 }), seen(wanted[2]!), left], names);
  expect(entries.map(({ key, state }) => `${key} ${state}`)).toEqual([
    '100.64.1.0/24 Missing',
    '100.65.0.0/16 Different',
    '100.66.0.0/16 InSync',
    '100.67.0.0/16 Missing',
    '203.0.113.0/24 Unwanted',
  ]);
  expect(entries[1]).toMatchObject({ wanted: [{ group: 's2/4' }], present: [{ group: 'group 71' }] });
  expect(entries.at(-1)?.present).toEqual([{ device: 'index 9' }]);
});
