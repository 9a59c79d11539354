import type { Join, World } from './world.ts';

/** Who is joined with whom by the enabled objects. */

interface Index {
  /** Enabled peerings by each pool in them. */
  readonly peeringsOf: ReadonlyMap<string, readonly Join[]>;
  readonly networks: Map<string, ReadonlySet<string>>;
}

/** What is worked out once for a world and asked for many times; a world never changes. */
const indexes = new WeakMap<World, Index>();

const indexOf = (world: World): Index => {
  const known = indexes.get(world);
  if (known) return known;
  const peeringsOf = new Map<string, Join[]>();
  for (const peering of world.poolPeerings)
    for (const pool of peering.members) peeringsOf.set(pool, [...(peeringsOf.get(pool) ?? []), peering]);
  const index: Index = { peeringsOf, networks: new Map() };
  indexes.set(world, index);
  return index;
};

const joined = (joins: readonly Join[], name: string): Set<string> =>
  new Set(joins.filter(({ members }) => members.has(name)).flatMap(({ members }) => [...members]));

/** The site and those whose nodes link directly with its nodes. */
export const meshSites = (world: World, site: string): Set<string> =>
  joined(
    world.sitePeerings.filter(({ mesh }) => mesh),
    site,
  ).add(site);

/** The site and those whose nodes reach its nodes' internal addresses. */
export const networkSites = (world: World, site: string): ReadonlySet<string> => {
  const { networks } = indexOf(world);
  const sites = networks.get(site) ?? joined(world.sitePeerings, site).add(site);
  networks.set(site, sites);
  return sites;
};

/** Pools that a site is assigned to, by name; which of them can serve it: `servingPools` in routing/distances.ts. */
export const poolsOfSite = (world: World, site: string): string[] =>
  [...new Set(world.assignments.filter(({ members }) => members.has(site)).flatMap(({ pools }) => [...pools]))]
    .filter((pool) => world.pools.has(pool))
    .sort();

/** Sites that are assigned to a pool; which of them it can serve: `servedSites` in routing/distances.ts. */
export const assignedSites = (world: World, pool: string): Set<string> =>
  new Set(world.assignments.filter(({ pools }) => pools.has(pool)).flatMap(({ members }) => [...members]));

/** Peerings that a pool is in. */
export const peeringsOf = (world: World, pool: string): readonly Join[] => indexOf(world).peeringsOf.get(pool) ?? [];

/** Pools that are peered with a pool (never the pool itself), by name. */
export const peeredPools = (world: World, pool: string): string[] => {
  const peers = joined(peeringsOf(world, pool), pool);
  peers.delete(pool);
  return [...peers].filter((name) => world.pools.has(name)).sort();
};
