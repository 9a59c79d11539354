import type { AdvertisedRoute, RouteHop } from '@unbounded/crds';
import { formatPrefix, type Prefix } from '@unbounded/ip';
import { isBefore, linksIn, poolDistances, servingPools } from './distances.ts';
import { peeredPools } from '../world/reach.ts';
import type { World } from '../world/world.ts';

/** Limits of GatewayPoolNode.status: routes, paths of a route, hops of a path. */
const MOST_ROUTES = 1000;
const MOST_PATHS = 100;
const MOST_HOPS = 32;

interface Advertised {
  readonly prefix: Prefix;
  readonly type: AdvertisedRoute['type'];
  readonly source: string;
  /** Undefined: the pools themselves are where the block lies. */
  readonly site: string | undefined;
  readonly pools: readonly string[];
}

const advertisedBlocks = (world: World): Advertised[] => {
  const ofSites = [...world.sites.values()].flatMap(({ name, podCidrs, nodeCidrs, locatorBlock }) => {
    const common = { source: name, site: name, pools: servingPools(world, name) };
    return [
      ...podCidrs.map((prefix): Advertised => ({ prefix, type: 'PodCidr', ...common })),
      ...nodeCidrs.map((prefix): Advertised => ({ prefix, type: 'NodeCidr', ...common })),
      ...(locatorBlock ? [{ prefix: locatorBlock, type: 'L2LocatorBlock' as const, ...common }] : []),
    ];
  });
  const ofPools = [...world.pools.values()].flatMap(({ name, routedCidrs }) =>
    routedCidrs.map((prefix): Advertised => ({
      prefix,
      type: 'RoutedCidr',
      source: name,
      site: undefined,
      pools: [name],
    })),
  );
  return [...ofSites, ...ofPools];
};

/** Shortest ways from a pool to the targets, as the names of the pools on them, the far end first. */
const shortestPaths = (world: World, pool: string, distances: ReadonlyMap<string, number>): string[][] => {
  const own = distances.get(pool);
  if (own === undefined || linksIn(own) >= MOST_HOPS - 1) return [];
  if (own === 0) return [[pool]];
  const paths: string[][] = [];
  for (const next of peeredPools(world, pool)) {
    if (paths.length >= MOST_PATHS) break;
    if (!isBefore(world, distances, { nearer: next, farther: pool })) continue;
    paths.push(...shortestPaths(world, next, distances).map((path) => [...path, pool]));
  }
  return paths.slice(0, MOST_PATHS);
};

const advertisedRoute = (block: Advertised, paths: readonly string[][]): AdvertisedRoute => {
  const site: RouteHop[] = block.site === undefined ? [] : [{ type: 'Site', name: block.site }];
  const hops = paths.map((path) => [...site, ...path.map((name): RouteHop => ({ type: 'GatewayPool', name }))]);
  // Pools on the way: all but our own, and but the pool that is the source itself.
  const between = paths[0]!.slice(block.site === undefined ? 1 : 0, -1);
  return {
    type: block.type,
    source: block.source,
    ...(between.length === 0
      ? {}
      : { intermediateHops: between.map((name): RouteHop => ({ type: 'GatewayPool', name })) }),
    paths: hops,
  };
};

/**
 * What a gateway offers to reach, as its GatewayPoolNode.status.routes says it: blocks of the sites that its pool
 * serves, its pool's routed blocks, and what it reaches through peered pools, each by the shortest ways (hops from the
 * source to the gateway's own pool). Of more than 1000 blocks the nearest. Empty for a node that is no gateway.
 */
export const advertisedRoutes = (world: World, gatewayName: string): Record<string, AdvertisedRoute> => {
  const pool = [...world.pools.values()].find(({ gateways }) => gateways.some(({ name }) => name === gatewayName));
  if (!pool) return {};
  const distanceOf = ({ pools, type, prefix }: Advertised): ReadonlyMap<string, number> =>
    poolDistances(world, pools, type === 'L2LocatorBlock' ? 'locator' : prefix.family);
  const found = advertisedBlocks(world).flatMap((block) => {
    const distances = distanceOf(block);
    const distance = distances.get(pool.name);
    return distance === undefined ? [] : [{ block, distances, distance }];
  });
  const routes = new Map<string, AdvertisedRoute>();
  for (const { block, distances } of found.sort((a, b) => a.distance - b.distance)) {
    const key = formatPrefix(block.prefix);
    const paths = routes.has(key) || routes.size >= MOST_ROUTES ? [] : shortestPaths(world, pool.name, distances);
    if (paths.length > 0) routes.set(key, advertisedRoute(block, paths));
  }
  return Object.fromEntries(routes);
};
