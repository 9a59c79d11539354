import { type GatewayPoolPeering, type SiteGatewayPoolAssignment, type SitePeering } from '@unbounded/crds';

/** The objects that join sites and pools. */
export interface Joins {
  /** Names of existing Sites. */
  readonly sites: ReadonlySet<string>;
  /** Names of existing GatewayPools. */
  readonly pools: ReadonlySet<string>;
  readonly assignments: readonly SiteGatewayPoolAssignment[];
  readonly sitePeerings: readonly SitePeering[];
  readonly poolPeerings: readonly GatewayPoolPeering[];
}

export interface Reach {
  /** Sites that the pool is assigned to, and those peered with them. */
  readonly connectedSites: readonly string[];
  /** The connected sites of the pool and of every pool that can be reached over pool peerings. */
  readonly reachableSites: readonly string[];
}

const isEnabled = ({ spec }: { readonly spec: { readonly enabled?: boolean } }): boolean => spec.enabled !== false;

const connectedTo = (pool: string, { sites, assignments, sitePeerings }: Joins): ReadonlySet<string> => {
  const assigned = new Set(
    assignments
      .filter((entry) => isEnabled(entry) && entry.spec.gatewayPools.includes(pool))
      .flatMap(({ spec }) => spec.sites),
  );
  const peered = sitePeerings
    .filter((entry) => isEnabled(entry) && entry.spec.sites.some((site) => assigned.has(site)))
    .flatMap(({ spec }) => spec.sites);
  return new Set([...assigned, ...peered].filter((site) => sites.has(site)));
};

const neighboursOf = ({ pools, poolPeerings }: Joins): ReadonlyMap<string, ReadonlySet<string>> => {
  const neighbours = new Map([...pools].map((pool) => [pool, new Set<string>()]));
  for (const { spec } of poolPeerings.filter(isEnabled)) {
    const members = spec.gatewayPools.filter((pool) => pools.has(pool));
    for (const pool of members) for (const other of members) if (other !== pool) neighbours.get(pool)!.add(other);
  }
  return neighbours;
};

/** The pool itself and every pool that a chain of peerings leads to. */
const poolsWithin = (start: string, neighbours: ReadonlyMap<string, ReadonlySet<string>>): ReadonlySet<string> => {
  const seen = new Set([start]);
  for (const pool of seen) for (const next of neighbours.get(pool) ?? []) seen.add(next); // a Set grows while it is walked
  return seen;
};

/** For every pool the sites that it serves and the sites that can be reached through it. */
export const planReach = (joins: Joins): ReadonlyMap<string, Reach> => {
  const connected = new Map([...joins.pools].map((pool) => [pool, connectedTo(pool, joins)]));
  const neighbours = neighboursOf(joins);
  return new Map(
    [...joins.pools].map((pool) => {
      const reachable = new Set([...poolsWithin(pool, neighbours)].flatMap((other) => [...connected.get(other)!]));
      return [pool, { connectedSites: [...connected.get(pool)!].sort(), reachableSites: [...reachable].sort() }];
    }),
  );
};

/** Objects that a join names and that do not exist. */
export const missingNames = (names: readonly string[], existing: ReadonlySet<string>): readonly string[] =>
  names.filter((name) => !existing.has(name));
