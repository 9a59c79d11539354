import { ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import type { RouteSpec } from '@unbounded/netlink';
import type { Forwarding } from '@unbounded/status';
import type { GroupsInUse } from '../data-path/forwarding.diff.ts';
import { forwardingList } from '../data-path/forwarding-list.ts';
import { compareRoutes } from '../data-path/route-entries.diff.ts';
import type { Dataplane } from './dataplane.ts';
import type { Health } from './health/health.ts';

/** Reads what the node forwards by, for who asks: nothing is written, and a pass goes on meanwhile. */

const inUse = (health: Pick<Health, 'groups'>): GroupsInUse =>
  new Map(
    health
      .groups()
      .map(({ name, members }) => [name, new Set(members.flatMap(({ node, isActive }) => (isActive ? [node] : [])))]),
  );

/**
 * @param wantedRoutes of the last pass
 * @param now the wall clock, milliseconds
 * @throws NetlinkError, BpfError; Error when the data path is closed
 */
export const readForwarding = async (
  { net, path, health }: Pick<Dataplane, 'net' | 'path' | 'health'>,
  wantedRoutes: readonly RouteSpec[],
  { dataplane, now }: { readonly dataplane: Forwarding['dataplane']; readonly now: () => number },
): Promise<Forwarding> => {
  const readTime = new Date(now()).toISOString();
  const devices = new Map((await net.links.list()).map(({ index, name }) => [index, name]));
  const compared = await path.compare({ devices, inUse: inUse(health) });
  const routes = compareRoutes(wantedRoutes, await net.routes.list({ protocol: ROUTE_PROTOCOL }), {
    devices,
    groups: compared.groupNames,
  });
  return forwardingList([...compared.entries, ...routes], { readTime, dataplane });
};
