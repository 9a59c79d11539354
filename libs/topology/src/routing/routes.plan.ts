import {
  comparePrefixes,
  containsPrefix,
  firstAddress,
  formatAddress,
  formatPrefix,
  overlaps,
  type Prefix,
} from '@unbounded/ip';
import type { Forwarding } from './forwarding.plan.ts';
import type { LocalNode } from '../links/local-node.ts';
import type { RoutePlan, RouteVia } from '../plan.ts';
import { servedSites } from './distances.ts';
import { nearBlocks } from './near.ts';
import type { World } from '../world/world.ts';

interface Route {
  readonly prefix: Prefix;
  readonly via: RouteVia;
  readonly mtuBytes: number;
}

/**
 * Blocks that never leave by the default route, also where they have no way: the pods of all sites whose addresses are
 * ours to give, and at a gateway the nodes of the sites it serves from another network.
 */
const keptBlocks = (world: World, local: LocalNode): Prefix[] => {
  const pods = [...world.sites.values()].filter(({ manageCni }) => manageCni).flatMap(({ podCidrs }) => podCidrs);
  const { pool } = local.member;
  if (pool === undefined) return pods;
  const near = nearBlocks(world, local);
  const nodes = servedSites(world, pool)
    .flatMap((name) => world.sites.get(name)?.nodeCidrs ?? [])
    .filter((block) => !near.some((own) => overlaps(own, block)));
  return [...pods, ...nodes];
};

/** Routes in the order of their prefixes, one a prefix, without those that say what the next wider one says already. */
const withoutRepeats = (routes: readonly Route[]): Route[] => {
  const covering: Route[] = [];
  const isSame = (a: Route, b: Route): boolean =>
    typeof a.via === 'string' && a.via === b.via && a.mtuBytes === b.mtuBytes;
  const sorted = routes.toSorted((a, b) => comparePrefixes(a.prefix, b.prefix));
  return sorted.filter((route, index) => {
    const previous = sorted[index - 1];
    if (previous && comparePrefixes(previous.prefix, route.prefix) === 0) return false; // the first given counts
    while (covering.length > 0 && !containsPrefix(covering.at(-1)!.prefix, route.prefix)) covering.pop();
    const wider = covering.at(-1);
    covering.push(route);
    return !(wider && isSame(wider, route));
  });
};

/** Under the netlink data path our table comes before the main one: what is here or near must be looked up there. */
const throughMain = (world: World, local: LocalNode, routes: readonly Route[], mtuBytes: number): Route[] =>
  [
    ...local.member.podCidrs,
    ...nearBlocks(world, local),
    ...(world.pools.get(local.member.pool ?? '')?.routedCidrs ?? []),
  ]
    .filter((block) => routes.some(({ prefix }) => containsPrefix(prefix, block)))
    .map((prefix) => ({ prefix, via: 'main', mtuBytes }));

/** What a destination is to the kernel's routes; only the netlink data path shows them next hops and groups. */
export const routeVia = (
  local: LocalNode,
  { to }: Forwarding['blocks'][number],
  empty: ReadonlySet<string>,
): RouteVia => {
  if (typeof to === 'object' && 'gateways' in to) return to;
  if (local.dataplane !== 'netlink') return 'anchor';
  if (to === 'pending') return 'unreachable';
  if ('group' in to) return empty.has(to.group) ? 'unreachable' : to;
  const { protocol: _, node: __, ...way } = to.nextHop;
  return way;
};

/** The routes of the node. A block behind a link that is narrower than the pods' MTU has one with that link's. */
export const planRoutes = (world: World, local: LocalNode, forwarding: Forwarding, mtuBytes: number): RoutePlan[] => {
  const { podCidrs } = local.member;
  const families = new Set(podCidrs.map(({ family }) => family));
  const own = new Set(podCidrs.map(formatPrefix)); // a node that has a whole pool has it on its bridge
  const empty = new Set(forwarding.groups.filter(({ members }) => members.length === 0).map(({ name }) => name));
  const nowhere: RouteVia = local.dataplane === 'netlink' ? 'unreachable' : 'anchor';
  const blocks = forwarding.blocks
    .filter(({ routed, transitTo }) => routed && !transitTo)
    .map((block): Route => ({
      prefix: block.prefix,
      via: routeVia(local, block, empty),
      mtuBytes: Math.min(mtuBytes, block.mtuBytes),
    }));
  const kept = keptBlocks(world, local).map((prefix): Route => ({ prefix, via: nowhere, mtuBytes }));
  const wanted = [...blocks, ...kept].filter(
    ({ prefix }) => families.has(prefix.family) && !own.has(formatPrefix(prefix)),
  );
  const near = local.dataplane === 'netlink' ? throughMain(world, local, wanted, mtuBytes) : [];
  return withoutRepeats([...near, ...wanted]).map(({ prefix, via, mtuBytes: bytes }) => {
    const source = podCidrs.find(({ family }) => family === prefix.family);
    const prefSrc = source && via !== 'unreachable' && via !== 'main' ? formatAddress(firstAddress(source)) : undefined;
    return { prefix: formatPrefix(prefix), via, ...(prefSrc === undefined ? {} : { prefSrc }), mtuBytes: bytes };
  });
};
