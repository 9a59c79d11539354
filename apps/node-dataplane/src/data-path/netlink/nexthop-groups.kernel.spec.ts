import { NEXTHOP_IDS, ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import { createNetns, createRouteSocket, type Netns, type RouteSocket } from '@unbounded/netlink';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createGroupOwner } from '../../connectivity/health/group-owner.ts';
import type { HealthGroup } from '../../connectivity/health/messages.ts';
import { createNexthopGroups } from './nexthop-groups.ts';
import type { Verdict } from '../../connectivity/health/verdict-file.ts';

/** Groups among the next hops of a kernel. */

let netns: Netns;
let net: RouteSocket;
const HOPS = [NEXTHOP_IDS.first, NEXTHOP_IDS.first + 1] as const;
const GROUP = NEXTHOP_IDS.first + 2;

beforeEach(async () => {
  netns = createNetns();
  net = createRouteSocket({ netnsFd: netns.fd });
  await net.links.modify('lo', { up: true });
  const { index } = (await net.links.get('lo'))!;
  for (const id of HOPS) await net.nexthops.create({ id, family: 4, link: index, protocol: ROUTE_PROTOCOL });
});
afterEach(() => {
  net.close();
  netns.close();
});

const members = async (): Promise<number[] | undefined> =>
  (await net.nexthops.list()).find(({ id }) => id === GROUP)?.group?.map(({ id }) => id);
const group: HealthGroup = {
  name: 'site s2 IPv4',
  index: GROUP,
  family: 4,
  members: HOPS.map((record, index) => ({ node: `g${index + 1}`, tier: 0, record })),
};

test('a failover that comes while the groups are looked at is not undone by what they were before', async () => {
  const states = new Map<string, Verdict['state']>();
  const verdictOf = (peer: string): Verdict => ({ state: states.get(peer) ?? 'Healthy', graceOver: true });
  const owner = createGroupOwner(createNexthopGroups(net), { of: verdictOf, lost: () => undefined });
  await owner.apply([group]);
  expect(await members()).toEqual([...HOPS]);
  const applied = owner.apply([group]);
  states.set('g2/IPv4', 'Unhealthy');
  owner.refresh('g2/IPv4');
  await applied;
  expect(await members()).toEqual([HOPS[0]]);
});

test('what a group without a usable member leads into is there for families that have groups alone: a kernel may have no IPv6', async () => {
  const verdictOf = (): Verdict => ({ state: 'Healthy', graceOver: true });
  const owner = createGroupOwner(createNexthopGroups(net), { of: verdictOf, lost: () => undefined });
  await owner.apply([group]);
  const blackholes = (await net.nexthops.list()).filter(({ blackhole }) => blackhole);
  expect(blackholes.map(({ family }) => family)).toEqual([4]);
});
