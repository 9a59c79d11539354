import { networkSites } from '../world/reach.ts';
import type { SiteModel, World } from '../world/world.ts';
import { poolDistances, servedSites, servingPools } from './distances.ts';

/** The Sites of a pool of gateways, as GatewayPool.status lists them: existing Sites alone, by name. */
export interface PoolReach {
  /**
   * Sites that the pool serves (assigned to it, and its gateways can link with their nodes), and Sites that share a network with one
   * of them by a SitePeering. The latter are not reachable by that alone: gateways have routes to Sites that a pool serves.
   */
  readonly connectedSites: readonly string[];
  /** Sites to which a gateway of the pool has a route: those that the pool serves, and those whose pods it reaches through peered pools. */
  readonly reachableSites: readonly string[];
}

/** Pools with a route to a site: those that serve it, and those from which peered pools lead to its pods, in either family. */
const poolsReaching = (world: World, { name, podCidrs }: SiteModel): ReadonlySet<string> => {
  const serving = servingPools(world, name);
  const families = new Set(podCidrs.map(({ family }) => family));
  return new Set([...serving, ...[...families].flatMap((family) => [...poolDistances(world, serving, family).keys()])]);
};

const connectedSites = (world: World, pool: string): string[] =>
  [...new Set(servedSites(world, pool).flatMap((site) => [...networkSites(world, site)]))]
    .filter((site) => world.sites.has(site))
    .sort();

/**
 * What every pool reaches, by the same serving pools and distances that decide about routes. All pools at once: distances are
 * worked out for each site, not for each pair of a site and a pool. A pool without gateways reaches nothing.
 */
export const reachOfPools = (world: World): ReadonlyMap<string, PoolReach> => {
  const reachable = new Map([...world.pools.keys()].map((pool) => [pool, [] as string[]]));
  for (const site of world.sites.values())
    for (const pool of poolsReaching(world, site)) reachable.get(pool)!.push(site.name);
  return new Map(
    [...reachable].map(([pool, sites]) => [
      pool,
      { connectedSites: connectedSites(world, pool), reachableSites: sites.sort() },
    ]),
  );
};
