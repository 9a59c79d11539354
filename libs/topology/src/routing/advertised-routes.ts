import type { AdvertisedRoute, RouteHop } from '@unbounded/crds';
import { formatPrefix, type Prefix } from '@unbounded/ip';
import { isBefore, linksIn, poolDistances, servingPools } from './distances.ts';
import { peeredPools } from '../world/reach.ts';
import type { Carried } from '../world/usable.ts';
import type { World } from '../world/world.ts';

/** Limits of GatewayPoolNode.status: routes, paths of a route, hops of a path. Its schema allows 100 paths, which nobody reads. */
const MOST_ROUTES = 1000;
const MOST_PATHS = 8;
const MOST_HOPS = 32;
/** Of JSON: an object of a megabyte more etcd refuses, again and again. */
const MOST_BYTES = 256 * 1024;

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
const shortestPaths = (
  world: World,
  { pool, family }: { readonly pool: string; readonly family: Carried },
  distances: ReadonlyMap<string, number>,
): string[][] => {
  const own = distances.get(pool);
  if (own === undefined || linksIn(own) >= MOST_HOPS - 1) return [];
  if (own === 0) return [[pool]];
  const paths: string[][] = [];
  for (const next of peeredPools(world, pool)) {
    if (paths.length >= MOST_PATHS) break;
    if (!isBefore(world, distances, { nearer: next, farther: pool, family })) continue;
    paths.push(...shortestPaths(world, { pool: next, family }, distances).map((path) => [...path, pool]));
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

interface Found {
  readonly block: Advertised;
  readonly paths: readonly string[][];
}

/** The nearest of all blocks, each once, by the shortest ways. */
const foundBlocks = (world: World, pool: string): ReadonlyMap<string, Found> => {
  const familyOf = ({ type, prefix }: Advertised): Carried => (type === 'L2LocatorBlock' ? 'locator' : prefix.family);
  const reached = advertisedBlocks(world).flatMap((block) => {
    const distances = poolDistances(world, block.pools, familyOf(block));
    const distance = distances.get(pool);
    return distance === undefined ? [] : [{ block, distances, distance }];
  });
  const found = new Map<string, Found>();
  for (const { block, distances } of reached.sort((a, b) => a.distance - b.distance)) {
    if (found.size >= MOST_ROUTES) break;
    const key = formatPrefix(block.prefix);
    const paths = found.has(key) ? [] : shortestPaths(world, { pool, family: familyOf(block) }, distances);
    if (paths.length > 0) found.set(key, { block, paths });
  }
  return found;
};

/** As many of the entries, from the first on, as the bytes are enough for. */
const fitting = <T>(entries: readonly T[]): T[] => {
  let bytes = 0;
  const tooLong = entries.findIndex((entry) => (bytes += JSON.stringify(entry).length) > MOST_BYTES);
  return tooLong === -1 ? [...entries] : entries.slice(0, tooLong);
};

/**
 * What a gateway offers to reach, as its GatewayPoolNode.status.routes says it: blocks of the sites that its pool
 * serves, its pool's routed blocks, and what it reaches through peered pools, each by the shortest ways (hops from the
 * source to the gateway's own pool), at most 8 of them. Of more than 1000 blocks the nearest. Where that is too much for an
 * object, half as many ways of each, and of blocks with a single one the nearest. Empty for a node that is no gateway.
 */
export const advertisedRoutes = (world: World, gatewayName: string): Record<string, AdvertisedRoute> => {
  const pool = [...world.pools.values()].find(({ gateways }) => gateways.some(({ name }) => name === gatewayName));
  if (!pool) return {};
  const found = [...foundBlocks(world, pool.name)];
  const routesWith = (most: number): [string, AdvertisedRoute][] =>
    found.map(([key, { block, paths }]) => [key, advertisedRoute(block, paths.slice(0, most))]);
  for (let most = MOST_PATHS; most > 1; most /= 2) {
    const routes = routesWith(most);
    if (fitting(routes).length === routes.length) return Object.fromEntries(routes);
  }
  return Object.fromEntries(fitting(routesWith(1)));
};
