import type { Route, RouteSpec } from '@unbounded/netlink';

/** What must change so that the observed routes (all of them ours) are the desired ones. */
export interface RouteDiff {
  readonly replace: readonly RouteSpec[];
  readonly remove: readonly RouteSpec[];
}

/** What tells routes apart. */
export const routeKey = (route: RouteSpec): string =>
  `${route.table ?? 254} ${route.dst} ${route.metric ?? (route.dst.includes(':') ? 1024 : 0)}`;

/** With the outer source: peers drop what comes from another address of ours. */
const encapOf = (encap: RouteSpec['encap']): string =>
  encap && 'dst' in encap ? `${encap.type} ${encap.id} ${encap.dst} ${encap.src ?? ''}` : '';

const hopsOf = (route: RouteSpec): string => {
  if (route.nexthopId !== undefined) return `id ${route.nexthopId}`; // the kernel shows what it consists of as well
  return route.nexthops
    ? route.nexthops
        .map(({ gateway, link, weight }) => `${gateway}%${link ?? ''}*${weight ?? 1}`)
        .sort()
        .join(',')
    : `${route.gateway ?? ''}%${route.link ?? ''} ${encapOf(route.encap)}`;
};

/** The observed route without devices that the kernel found for gateways because none was asked for. */
const withoutFoundLinks = (wanted: RouteSpec, seen: Route): RouteSpec => {
  if (wanted.nexthopId !== undefined) return seen;
  const asked = wanted.nexthops ? wanted.nexthops.some(({ link }) => link !== undefined) : wanted.link !== undefined;
  if (asked) return seen;
  const { link: _found, nexthops, ...rest } = seen;
  return nexthops ? { ...rest, nexthops: nexthops.map(({ link: _hopFound, ...hop }) => hop) } : rest;
};

/** Compares what we set; what the kernel adds (scope of a device, flags) is its own. A gateway's device may be left to it. */
const sameRoute = (wanted: RouteSpec, seen: Route): boolean => {
  const leadsNowhere = (wanted.type ?? 'unicast') !== 'unicast'; // IPv6 shows a device all the same
  const hops = leadsNowhere || hopsOf(wanted) === hopsOf(withoutFoundLinks(wanted, seen));
  return (
    hops &&
    wanted.mtu === seen.mtu &&
    (wanted.prefSrc === undefined || wanted.prefSrc === seen.prefSrc) &&
    (wanted.type ?? 'unicast') === seen.type
  );
};

export const diffRoutes = (observed: readonly Route[], desired: readonly RouteSpec[]): RouteDiff => {
  const seen = new Map(observed.map((route) => [routeKey(route), route]));
  const wanted = new Set(desired.map(routeKey));
  return {
    replace: desired.filter((route) => {
      const present = seen.get(routeKey(route));
      return !present || !sameRoute(route, present);
    }),
    remove: observed.filter((route) => !wanted.has(routeKey(route))),
  };
};
