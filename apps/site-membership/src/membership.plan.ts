import { type GatewayPool, type Site, type SiteNodeSlice, type SitePeering } from '@unbounded/crds';
import { indexSites, type NodeFacts, poolOf, type SiteOverlap } from '@unbounded/membership';

import { planSlices } from './slices.plan.ts';

export interface MembershipWorld {
  readonly sites: readonly Site[];
  readonly pools: readonly GatewayPool[];
  readonly peerings: readonly SitePeering[];
  readonly nodes: readonly NodeFacts[];
}

/** `site` undefined: the label goes. */
export interface LabelChange {
  readonly node: string;
  readonly site: string | undefined;
}

export interface SitePlan {
  readonly site: Site;
  /** Nodes of the site that are no gateways. */
  readonly nodeCount: number;
  readonly slices: readonly SiteNodeSlice[];
  /** Names of all nodes of the site, gateways too: while there are any it must not go away. */
  readonly members: readonly string[];
  /** Earlier sites that have some of its addresses. */
  readonly overlaps: readonly SiteOverlap[];
}

export interface PeeringPlan {
  readonly peering: SitePeering;
  readonly peeredSiteCount: number;
  readonly totalNodeCount: number;
  /** Named, but no such Site. */
  readonly missing: readonly string[];
}

export interface MembershipPlan {
  readonly labels: readonly LabelChange[];
  /** Nodes that are in no Site. */
  readonly homelessCount: number;
  readonly sites: readonly SitePlan[];
  readonly peerings: readonly PeeringPlan[];
}

/**
 * A node leaves the slices only when a pool's status already lists it and it still is eligible: so at every moment it
 * stands in a slice, in a pool, or for a short while in both, but never in neither.
 */
const gatewayNames = ({ pools, nodes }: MembershipWorld): ReadonlySet<string> => {
  const listed = new Set(pools.flatMap(({ status }) => status?.nodes?.map(({ name }) => name) ?? []));
  return new Set(nodes.filter((node) => listed.has(node.name) && poolOf(node, pools)).map(({ name }) => name));
};

const planPeering = (peering: SitePeering, counts: ReadonlyMap<string, number>): PeeringPlan => {
  const { sites, enabled } = peering.spec;
  const known = enabled === false ? [] : sites.filter((name) => counts.has(name));
  return {
    peering,
    peeredSiteCount: known.length,
    totalNodeCount: known.reduce((sum, name) => sum + (counts.get(name) ?? 0), 0),
    missing: sites.filter((name) => !counts.has(name)),
  };
};

/** Which node is in which Site, and what follows from it. */
export const planMembership = (world: MembershipWorld): MembershipPlan => {
  const index = indexSites(world.sites);
  const gateways = gatewayNames(world);
  const overlaps = index.overlaps();
  const members = new Map<string, NodeFacts[]>(index.sites.map(({ metadata }) => [metadata.name, []]));
  const labels: LabelChange[] = [];
  for (const node of world.nodes) {
    const site = index.siteOf(node)?.metadata.name;
    if (site !== undefined) members.get(site)!.push(node);
    if (node.siteLabel !== site) labels.push({ node: node.name, site });
  }
  const sites = index.sites.map((site): SitePlan => {
    const all = members.get(site.metadata.name)!;
    const workers = all.filter(({ name }) => !gateways.has(name));
    return {
      site,
      nodeCount: workers.length,
      slices: planSlices(site, workers),
      members: all.map(({ name }) => name).sort(),
      overlaps: overlaps.filter((overlap) => overlap.site === site.metadata.name),
    };
  });
  const counts = new Map([...members].map(([name, nodes]) => [name, nodes.length]));
  const homelessCount = world.nodes.length - [...counts.values()].reduce((sum, count) => sum + count, 0);
  return { labels, homelessCount, sites, peerings: world.peerings.map((peering) => planPeering(peering, counts)) };
};
