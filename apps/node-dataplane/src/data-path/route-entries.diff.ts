import { type Route, ROUTE_TABLES, type RouteHop, type RouteSpec } from '@unbounded/netlink';
import type { ForwardingEntry, ForwardingWay } from '@unbounded/status';
import { diffRoutes, routeKey } from '../kernel/routes.diff.ts';

/** Routes of ours: as the last pass wanted them, and as they are. */

/** What people call what routes have numbers for. */
interface Names {
  readonly devices: ReadonlyMap<number, string>;
  readonly groups: ReadonlyMap<number, string>;
}

export const routeWay = (
  { link, gateway, encap }: RouteHop,
  devices: ReadonlyMap<number, string>,
): Pick<ForwardingWay, 'device' | 'via'> => {
  const via = encap && 'dst' in encap ? encap.dst : gateway;
  return {
    ...(link === undefined ? {} : { device: devices.get(link) ?? `index ${link}` }),
    ...(via === undefined ? {} : { via }),
  };
};

const waysOf = (route: RouteSpec, names: Names): ForwardingWay[] => {
  const { type = 'unicast', nexthopId, nexthops, mtu } = route;
  const settings = mtu === undefined ? {} : { mtuBytes: mtu };
  if (type !== 'unicast') return [{ kind: type }];
  if (nexthopId !== undefined) return [{ group: names.groups.get(nexthopId) ?? `group ${nexthopId}`, ...settings }];
  return (nexthops ?? [route]).map((hop) => ({ ...routeWay(hop, names.devices), ...settings }));
};

export const compareRoutes = (
  wanted: readonly RouteSpec[],
  present: readonly Route[],
  names: Names,
): ForwardingEntry[] => {
  const seen = new Map(present.map((route) => [routeKey(route), route]));
  const { replace, remove } = diffRoutes(present, wanted);
  const differing = new Set(replace);
  const place = ({ dst, table = ROUTE_TABLES.main }: RouteSpec) => ({ table: `routes ${table}`, key: dst });
  const planned = wanted.map((route): ForwardingEntry => {
    const found = seen.get(routeKey(route));
    const state = found ? (differing.has(route) ? 'Different' : 'InSync') : 'Missing';
    const ways = { wanted: waysOf(route, names), ...(found && { present: waysOf(found, names) }) };
    return { ...place(route), state, ...ways };
  });
  return [
    ...planned,
    ...remove.map((route) => ({ ...place(route), state: 'Unwanted' as const, present: waysOf(route, names) })),
  ];
};
