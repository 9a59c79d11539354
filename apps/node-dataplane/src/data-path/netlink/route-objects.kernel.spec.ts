import { execFileSync } from 'node:child_process';
import { createNetns, createRouteSocket, type Netns, type RouteSocket } from '@unbounded/netlink';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { planFor } from '../../testdata.ts';
import type { KernelPlan } from '../kernel-plan.ts';
import { createGroupIndexes } from '../group-indexes.ts';
import { createNexthopGroups } from './nexthop-groups.ts';
import { ensureNexthops } from './route-objects.ts';
import { planRouteObjects } from './route-objects.plan.ts';

/** Routes and next hops of a plan, as a kernel uses them. */

let netns: Netns;
let net: RouteSocket;
beforeEach(() => {
  netns = createNetns();
  net = createRouteSocket({ netnsFd: netns.fd });
});
afterEach(() => {
  net.close();
  netns.close();
});

const ip = (...argv: string[]): string =>
  execFileSync('nsenter', [`--net=${netns.path}`, 'ip', ...argv], { encoding: 'utf8' });

const [OVERLAY, OWN] = ['fd64:1::1', 'fd10:1::31'];
const via = { group: 'site s2 IPv6' };
/** A gateway is behind the one WireGuard interface: its site's pods and nodes, and locators, which have another source. */
const plan: KernelPlan = {
  ...planFor('w1', 'WireGuard', 'netlink'),
  groups: [
    {
      name: via.group,
      family: 6,
      site: 's2',
      members: [{ device: 'wg0', protocol: 'WireGuard', node: 'g2', tier: 0 }],
    },
  ],
  routes: [
    { prefix: 'fd53:0:0:2::/64', via, prefSrc: OVERLAY, mtuBytes: 1420 },
    { prefix: 'fd10:2::/64', via, prefSrc: OWN, mtuBytes: 1420 },
    { prefix: 'fd64:2::/64', via, prefSrc: OWN, mtuBytes: 1420 },
  ],
};

test('where all routes get another source, next hops and groups stay as they are', () => {
  const indexes = createGroupIndexes();
  const objectsFrom = (prefSrc: string) => {
    const routes = plan.routes.map((route) => ({ ...route, prefSrc }));
    const { nexthops, groups } = planRouteObjects({ ...plan, routes }, new Map([['wg0', 7]]), indexes);
    return { nexthops, groups };
  };
  const before = objectsFrom(OVERLAY);
  expect(objectsFrom(OWN)).toEqual(before);
  // One of them alone is beside the others, which stay.
  const { nexthops } = planRouteObjects(plan, new Map([['wg0', 7]]), indexes);
  expect(nexthops).toHaveLength(2);
  expect(nexthops).toEqual(expect.arrayContaining([...before.nexthops]));
});

test('each route gives its own source, whichever was used first, although the kernel keeps routes in their next hops', async () => {
  ip('link', 'add', 'wg0', 'type', 'veth', 'peer', 'name', 'far');
  for (const name of ['lo', 'wg0', 'far']) ip('link', 'set', name, 'up');
  for (const address of [OVERLAY, OWN]) ip('addr', 'add', `${address}/128`, 'dev', 'wg0', 'nodad');
  const { index } = (await net.links.get('wg0'))!;
  const { nexthops, groups, routes } = planRouteObjects(plan, new Map([['wg0', index]]), createGroupIndexes());
  expect(await ensureNexthops(net, nexthops)).toEqual([]);
  const kernel = createNexthopGroups(net);
  await kernel.ensure(() =>
    groups.map(({ id, family, members }) => ({
      index: id,
      family,
      members: members.map(({ nexthopId }) => ({ record: nexthopId, weight: 1 })),
    })),
  );
  for (const route of routes) await net.routes.replace(route);
  ip('-6', 'rule', 'add', 'lookup', String(plan.routeTable));
  const sourceTo = (address: string): string | undefined => / src (\S+)/.exec(ip('-6', 'route', 'get', address))?.[1];
  for (const order of [
    ['fd53:0:0:2::7', 'fd10:2::7', 'fd64:2::7'],
    ['fd64:2::7', 'fd53:0:0:2::7', 'fd10:2::7'],
  ])
    expect(order.map((address) => [address, sourceTo(address)])).toEqual(
      order.map((address) => [address, address.startsWith('fd53') ? OVERLAY : OWN]),
    );
  expect(groups.map(({ name }) => name)).toEqual(['site s2 IPv6', `site s2 IPv6 from ${OWN}`]);
});
