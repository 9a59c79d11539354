import { ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import { type Route, ROUTE_TABLES, type RouteSocket, type RouteSpec } from '@unbounded/netlink';
import type { Problem } from '@unbounded/topology';
import { deleteAll } from './delete-all.ts';
import { isContainedWithout, isPlain } from './route-containment.ts';
import { diffRoutes } from './routes.diff.ts';

/** What a route to plain neighbours (protocol None) says of the way; the kernel finds the device. */
export const plainWay = (gateways: readonly string[]): Pick<RouteSpec, 'gateway' | 'nexthops'> =>
  gateways.length === 1 ? { gateway: gateways[0]! } : { nexthops: gateways.map((gateway) => ({ gateway })) };

export interface RouteOutcome {
  readonly changed: number;
  /** Without these routes packets for the overlay may leave outside of it. */
  readonly problems: readonly Problem[];
  /** Routes that the kernel refuses and that only their own destinations lack: everything else goes on. */
  readonly ofPeers: readonly Problem[];
  /** Routes of others to the same destinations, which are kept: ours are not installed. */
  readonly foreign: readonly Problem[];
  /** Wanted routes that are there now. */
  readonly standing: readonly RouteSpec[];
  /** Takes away what is no longer wanted; called when everything new is in place. */
  removeStale(): Promise<number>;
}

const destinationOf = ({ dst, table = ROUTE_TABLES.main }: RouteSpec): string => `${table} ${dst}`;

/**
 * Routes of others by their destinations, in the tables of some of ours. Whatever their metric: with a better one ours would
 * take their packets, with a worse one it would take over when theirs goes.
 */
const foreignRoutes = async (
  net: RouteSocket,
  ours: readonly RouteSpec[],
  own: number,
): Promise<ReadonlyMap<string, Route>> => {
  const tables = new Set(ours.map(({ table = ROUTE_TABLES.main }) => table));
  const listed = await Promise.all([...tables].map((table) => net.routes.list({ table })));
  const others = listed.flat().filter(({ protocol }) => protocol !== own);
  return new Map(others.map((route) => [destinationOf(route), route]));
};

const describeWay = ({ type = 'unicast', gateway, link, nexthops, nexthopId, metric }: RouteSpec): string => {
  const via = gateway ?? nexthops?.map((hop) => hop.gateway ?? `link ${hop.link}`).join(' ');
  const words = [
    ...(type === 'unicast' ? [] : [type]),
    ...(via === undefined ? [] : [`via ${via}`]),
    ...(link === undefined ? [] : [`on link ${link}`]),
    ...(nexthopId === undefined ? [] : [`by next hop ${nexthopId}`]),
    `metric ${metric ?? 0}`,
  ];
  return words.join(' ');
};

const foreignProblem = (wanted: RouteSpec, found: Route | undefined): Problem => ({
  reason: 'ForeignRoute',
  message: `a route to ${wanted.dst} in table ${wanted.table ?? ROUTE_TABLES.main} exists that is not ours${found ? ` (${describeWay(found)}, protocol ${found.protocol})` : ''}, and is kept: ours (${describeWay(wanted)}) is not installed, and packets to ${wanted.dst} do not enter the overlay. Those to pods and nodes of the overlay are dropped if that route leads to a device that is not ours (overlay_leak), so that they do not leave in the clear; others take it. Remove that route, or the block from the Site or GatewayPool`,
});

const peerProblem = (route: RouteSpec, { message }: Error): Problem => ({
  reason: 'PeerRouteFailed',
  message: `route ${route.dst} (${describeWay(route)}): ${message}: what is behind it is not reached, everything else is; ${isPlain(route) ? 'the address must be one of a neighbor on a network of this node: correct the InternalIP of that node, or use a tunnel protocol' : 'the agent tries again'}`,
});

/**
 * Adds and corrects routes at once, whatever their table; removals wait for the caller, so that nothing is taken before its
 * successor stands. A route is made only where no other one leads to its destination; corrected is only what is ours.
 * @param protocol of the section's routes
 * @param isOptional nothing leaves outside of the overlay without it
 */
export const ensureRoutes = async (
  net: RouteSocket,
  wanted: readonly RouteSpec[],
  protocol: number,
  isOptional: (route: RouteSpec) => boolean = () => false,
): Promise<RouteOutcome> => {
  const observed = await net.routes.list({ protocol });
  const diff = diffRoutes(observed, wanted);
  const others =
    diff.replace.length === 0 ? new Map<string, Route>() : await foreignRoutes(net, diff.replace, protocol);
  const own = new Set(observed.map(destinationOf));
  const blocked = diff.replace.filter((route) => others.has(destinationOf(route)));
  const free = diff.replace.filter((route) => !others.has(destinationOf(route)));
  const changes = free.map((value) => ({
    op: own.has(destinationOf(value)) ? ('replace' as const) : ('create' as const),
    value,
  }));
  const results = await net.routes.apply(changes);
  const foreign = blocked.map((route) => foreignProblem(route, others.get(destinationOf(route))));
  const [problems, ofPeers] = [new Array<Problem>(), new Array<Problem>()];
  const refused = new Set(free.filter((_, index) => !results[index]!.ok));
  const standing = wanted.filter((route) => !refused.has(route) && !blocked.includes(route));
  for (const [index, result] of results.entries()) {
    if (result.ok) continue;
    const route = free[index]!;
    if (result.error.code === 'EEXIST') foreign.push(foreignProblem(route, undefined)); // made since we looked
    else if (isOptional(route) || isContainedWithout(route, standing)) ofPeers.push(peerProblem(route, result.error));
    else problems.push({ reason: 'RouteFailed', message: `route ${route.dst}: ${result.error.message}` });
  }
  // Of ours beside another's: ours would have to change, and only theirs is left.
  const outdated = observed.filter((route) => blocked.some((one) => destinationOf(one) === destinationOf(route)));
  return {
    changed: free.length,
    problems,
    ofPeers,
    foreign,
    standing,
    removeStale: async () => {
      const stale = [...new Set([...diff.remove, ...outdated])];
      await deleteAll(net.routes, stale);
      return stale.length;
    },
  };
};

/** Removes every route that carries our protocol number. */
export const removeAllRoutes = async (net: RouteSocket): Promise<void> => {
  const ours = await net.routes.list({ protocol: ROUTE_PROTOCOL });
  await net.routes.apply(ours.map((value) => ({ op: 'delete' as const, value })));
};
