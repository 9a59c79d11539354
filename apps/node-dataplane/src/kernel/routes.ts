import { ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import { isAbsent, type Link, type RouteSocket, type RouteSpec } from '@unbounded/netlink';
import { DEVICES, type NodePlan, type Problem } from '@unbounded/topology';
import { diffRoutes } from './routes.diff.ts';

const MAIN = 254;

/** The plan's routes with the devices' numbers; those whose device is missing are left out. */
const specsOf = (plan: NodePlan, links: ReadonlyMap<string, Link>): RouteSpec[] => {
  const anchor = links.get(DEVICES.anchor);
  return plan.routes.flatMap(({ prefix, via, prefSrc, mtuBytes }): RouteSpec[] => {
    const common = {
      dst: prefix,
      table: MAIN,
      protocol: ROUTE_PROTOCOL,
      mtu: mtuBytes,
      ...(prefSrc ? { prefSrc } : {}),
    };
    if (via === 'anchor') return anchor ? [{ ...common, link: anchor.index }] : [];
    if (typeof via === 'string' || !('gateways' in via)) return []; // of the netlink data path
    const [only] = via.gateways;
    return via.gateways.length === 1
      ? [{ ...common, gateway: only! }]
      : [{ ...common, nexthops: via.gateways.map((gateway) => ({ gateway })) }];
  });
};

export interface RouteOutcome {
  readonly changed: number;
  readonly problems: readonly Problem[];
  /** Takes away what is no longer wanted; called when everything new is in place. */
  removeStale(): Promise<number>;
}

/** Adds and corrects routes at once; removals wait for the caller, so that nothing is taken before its successor stands. */
export const ensureRoutes = async (
  net: RouteSocket,
  plan: NodePlan,
  links: ReadonlyMap<string, Link>,
): Promise<RouteOutcome> => {
  const observed = (await net.routes.list({ protocol: ROUTE_PROTOCOL })).filter(({ table }) => table === MAIN);
  const diff = diffRoutes(observed, specsOf(plan, links));
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
