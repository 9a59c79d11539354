import type { Nexthop, NexthopSpec } from '@unbounded/netlink';
import type { ForwardingEntry } from '@unbounded/status';
import { compareSides, type GroupsInUse, type Side } from '../forwarding.diff.ts';
import { routeWay } from '../route-entries.diff.ts';
import { isOurGroup } from './nexthop-groups.ts';
import type { RouteObjects } from './route-objects.plan.ts';
import { nexthopText } from './route-objects.ts';

/** Next-hop groups of the netlink data path: as the last plan has them, and as they are. */

const sideOf = (hops: readonly NexthopSpec[], devices: ReadonlyMap<number, string>): Side => ({
  ways: hops.map((hop) => routeWay(hop, devices)),
  fingerprint: hops.map(nexthopText).sort().join('\n'),
});

/** A group of which nobody carries anything leads into a next hop that drops: shown as without any. */
const isCarrier = ({ blackhole }: NexthopSpec): boolean => blackhole !== true;

/**
 * @param present all next hops of the namespace
 * @param devices names by their indexes
 */
export const compareNexthopGroups = (
  { groups, nexthops }: Pick<RouteObjects, 'groups' | 'nexthops'>,
  present: readonly Nexthop[],
  { devices, inUse }: { readonly devices: ReadonlyMap<number, string>; readonly inUse: GroupsInUse },
): ForwardingEntry[] => {
  const planned = new Map(nexthops.map((hop) => [hop.id, hop]));
  const seen = new Map(present.map((hop) => [hop.id, hop]));
  const names = new Map(groups.map(({ id, name }) => [id, name]));
  const wantedSides = groups.map(({ name, members }) => {
    const nodes = inUse.get(name);
    const carrying = members.filter(({ node }) => nodes?.has(node) ?? true);
    return [
      name,
      sideOf(
        carrying.flatMap(({ nexthopId }) => planned.get(nexthopId) ?? []),
        devices,
      ),
    ] as const;
  });
  const presentSides = present.filter(isOurGroup).map(({ id, group = [] }) => {
    const hops = group.flatMap((member) => seen.get(member.id) ?? []).filter(isCarrier);
    return [names.get(id) ?? `group ${id}`, sideOf(hops, devices)] as const;
  });
  return compareSides('nexthop groups', new Map(wantedSides), new Map(presentSides));
};
