import { DEFAULT_HEALTH, type HealthSettings } from '../world/health-settings.ts';
import type { LinkScope, Member, World } from '../world/world.ts';

/** Where a node stands: what its links are governed by. */
export type Place = Pick<Member, 'site' | 'pool'>;

/** The objects that govern a link (design decision 6), the same seen from either end. */
export const scopesOf = (world: World, a: Place, b: Place): LinkScope[] => {
  const sites = [...new Set([a.site, b.site])].flatMap((name) => world.sites.get(name)?.scope ?? []);
  const pools = [...new Set([a.pool, b.pool])].flatMap((name) =>
    name === undefined ? [] : (world.pools.get(name)?.scope ?? []),
  );
  return [...sites, ...pools, ...joinsOf(world, a, b)];
};

/** The joining objects among them: what links the two nodes' sites, or pools, or one's site with the other's pool. */
const joinsOf = (world: World, a: Place, b: Place): LinkScope[] => {
  if (a.pool !== undefined && b.pool !== undefined) {
    if (a.pool === b.pool) return [];
    return world.poolPeerings
      .filter(({ members }) => members.has(a.pool!) && members.has(b.pool!))
      .map(({ scope }) => scope);
  }
  if (a.pool === undefined && b.pool === undefined) {
    if (a.site === b.site) return [];
    return world.sitePeerings
      .filter(({ members }) => members.has(a.site) && members.has(b.site))
      .map(({ scope }) => scope);
  }
  const [worker, gateway] = a.pool === undefined ? [a, b] : [b, a];
  return world.assignments
    .filter(({ members, pools }) => members.has(worker.site) && pools.has(gateway.pool!))
    .map(({ scope }) => scope);
};

/** What joins the two ends says more about their link than the pool, and the pool more than the site. */
const SPECIFICITY: Readonly<Record<LinkScope['kind'], number>> = {
  SitePeering: 0,
  SiteGatewayPoolAssignment: 0,
  GatewayPoolPeering: 0,
  GatewayPool: 1,
  Site: 2,
};

/** How a link is probed: the most specific object that says so decides, of several the first by name. */
export const healthOf = (scopes: readonly LinkScope[]): HealthSettings => {
  const [decides] = scopes
    .filter(({ health }) => health !== undefined)
    .sort((a, b) => SPECIFICITY[a.kind] - SPECIFICITY[b.kind] || (a.name < b.name ? -1 : 1));
  return decides?.health ?? DEFAULT_HEALTH;
};
