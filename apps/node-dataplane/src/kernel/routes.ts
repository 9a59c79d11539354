import { ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import { isAbsent, type RouteSocket, type RouteSpec } from '@unbounded/netlink';
import type { Problem } from '@unbounded/topology';
import { diffRoutes } from './routes.diff.ts';

/** What a route to plain neighbours (protocol None) says of the way; the kernel finds the device. */
export const plainWay = (gateways: readonly string[]): Pick<RouteSpec, 'gateway' | 'nexthops'> =>
  gateways.length === 1 ? { gateway: gateways[0]! } : { nexthops: gateways.map((gateway) => ({ gateway })) };

export interface RouteOutcome {
  readonly changed: number;
  readonly problems: readonly Problem[];
  /** Takes away what is no longer wanted; called when everything new is in place. */
  removeStale(): Promise<number>;
}

/** Adds and corrects routes at once, whatever their table; removals wait for the caller, so that nothing is taken before its successor stands. */
export const ensureRoutes = async (net: RouteSocket, wanted: readonly RouteSpec[]): Promise<RouteOutcome> => {
  const diff = diffRoutes(await net.routes.list({ protocol: ROUTE_PROTOCOL }), wanted);
  const results = await net.routes.apply(diff.replace.map((value) => ({ op: 'replace' as const, value })));
  const problems = results.flatMap((result, index): Problem[] =>
    result.ok ? [] : [{ reason: 'RouteFailed', message: `route ${diff.replace[index]!.dst}: ${result.error.message}` }],
  );
  return {
    changed: diff.replace.length,
    problems,
    removeStale: async () => {
      const removed = await net.routes.apply(diff.remove.map((value) => ({ op: 'delete' as const, value })));
      for (const result of removed) if (!result.ok && !isAbsent(result.error)) throw result.error;
      return diff.remove.length;
    },
  };
};

/** Removes every route that carries our protocol number. */
export const removeAllRoutes = async (net: RouteSocket): Promise<void> => {
  const ours = await net.routes.list({ protocol: ROUTE_PROTOCOL });
  await net.routes.apply(ours.map((value) => ({ op: 'delete' as const, value })));
};
