import type { Prefix } from '@unbounded/ip';
import type { Join, World } from './world.ts';

/** Who is joined with whom, and what can be reached through a pool of gateways. */

const joined = (joins: readonly Join[], name: string): Set<string> =>
  new Set(joins.filter(({ members }) => members.has(name)).flatMap(({ members }) => [...members]));

/** The site and those whose nodes link directly with its nodes. */
export const meshSites = (world: World, site: string): Set<string> =>
  joined(
    world.sitePeerings.filter(({ mesh }) => mesh),
    site,
  ).add(site);

/** The site and those whose nodes reach its nodes' internal addresses. */
export const networkSites = (world: World, site: string): Set<string> => joined(world.sitePeerings, site).add(site);

/** Pools that serve a site, by name. */
export const poolsOfSite = (world: World, site: string): string[] =>
  [...new Set(world.assignments.filter(({ members }) => members.has(site)).flatMap(({ pools }) => [...pools]))]
    .filter((pool) => world.pools.has(pool))
    .sort();

/** Sites that a pool is assigned to. */
export const assignedSites = (world: World, pool: string): Set<string> =>
  new Set(world.assignments.filter(({ pools }) => pools.has(pool)).flatMap(({ members }) => [...members]));

/** Sites that a pool serves: assigned to it, or with a network shared with such a one. */
export const connectedSites = (world: World, pool: string): Set<string> =>
  new Set([...assignedSites(world, pool)].flatMap((site) => [...networkSites(world, site)]));

/** Pools that are peered with a pool (never the pool itself), by name. */
export const peeredPools = (world: World, pool: string): string[] => {
  const peers = joined(world.poolPeerings, pool);
  peers.delete(pool);
  return [...peers].filter((name) => world.pools.has(name)).sort();
};

/** A block that lies behind a pool. */
export interface Reached {
  readonly prefix: Prefix;
  readonly kind: 'PodCidr' | 'NodeCidr' | 'RoutedCidr';
  /** Undefined for routed blocks of a pool. */
  readonly site: string | undefined;
  /** 0: the pool itself serves it; each peered pool in between counts one. */
  readonly distance: number;
}

const blocksOfPool = (world: World, pool: string, distance: number): Reached[] => {
  const sites = [...connectedSites(world, pool)].sort().flatMap((name) => {
    const site = world.sites.get(name);
    if (!site) return [];
    const block = (kind: Reached['kind']) => (prefix: Prefix) => ({ prefix, kind, site: name, distance });
    return [...site.podCidrs.map(block('PodCidr')), ...site.nodeCidrs.map(block('NodeCidr'))];
  });
  const routed = world.pools.get(pool)?.routedCidrs ?? [];
  return [...sites, ...routed.map((prefix) => ({ prefix, kind: 'RoutedCidr' as const, site: undefined, distance }))];
};

/**
 * Everything behind a pool: its own sites and routed blocks, and through peered pools those of others. Pools in `not`
 * are never entered, which is what keeps a path from coming back to where it started.
 */
export const reachThrough = (world: World, pool: string, not: ReadonlySet<string>): Reached[] => {
  const seen = new Set([...not, pool]);
  const reached: Reached[] = [];
  for (let ring = [pool], distance = 0; ring.length > 0; distance++) {
    reached.push(...ring.flatMap((name) => blocksOfPool(world, name, distance)));
    const next = new Set(ring.flatMap((name) => peeredPools(world, name)).filter((name) => !seen.has(name)));
    for (const name of next) seen.add(name);
    ring = [...next].sort();
  }
  return reached;
};
