import type { GatewayPool, Site, SiteNodeSlice, SitePeering } from '@unbounded/crds';
import {
  indexSites,
  type NodeFacts,
  type NodeProblem,
  poolOf,
  type SettledNode,
  settleNodes,
  type SiteOverlap,
} from '@unbounded/membership';

import { planSlices } from './slices.plan.ts';

export interface MembershipWorld {
  readonly sites: readonly Site[];
  readonly pools: readonly GatewayPool[];
  readonly peerings: readonly SitePeering[];
  readonly nodes: readonly NodeFacts[];
  /** As observed: they record which node was listed first with a key, an address or a block. */
  readonly slices: readonly SiteNodeSlice[];
}

/** A node of which something is not used. */
export interface NodeFinding {
  readonly node: string;
  readonly problems: readonly NodeProblem[];
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
  /** Members of which something is not used. */
  readonly findings: readonly NodeFinding[];
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
  /** Of all nodes, in a Site or not. */
  readonly findings: readonly NodeFinding[];
}

/**
 * A node leaves the slices only when a pool's status already lists it and it still is eligible: so at every moment it
 * stands in a slice, in a pool, or for a short while in both, but never in neither.
 */
const gatewayNames = ({ pools }: MembershipWorld, nodes: readonly SettledNode[]): ReadonlySet<string> => {
  const listed = new Set(pools.flatMap(({ status }) => status?.nodes?.map(({ name }) => name) ?? []));
  const isGateway = ({ facts }: SettledNode): boolean => listed.has(facts.name) && poolOf(facts, pools) !== undefined;
  return new Set(nodes.filter(isGateway).map(({ facts }) => facts.name));
};

const findingsOf = (nodes: readonly SettledNode[]): NodeFinding[] =>
  nodes
    .filter(({ problems }) => problems.length > 0)
    .map(({ facts, problems }) => ({ node: facts.name, problems }))
    .sort((a, b) => (a.node < b.node ? -1 : 1));

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
  const nodes = settleNodes(world);
  const gateways = gatewayNames(world, nodes);
  const overlaps = index.overlaps();
  const members = new Map<string, SettledNode[]>(index.sites.map(({ metadata }) => [metadata.name, []]));
  const labels: LabelChange[] = [];
  for (const node of nodes) {
    const site = node.site?.metadata.name;
    if (site !== undefined) members.get(site)!.push(node);
    if (node.facts.siteLabel !== site) labels.push({ node: node.facts.name, site });
  }
  const sites = index.sites.map((site): SitePlan => {
    const all = members.get(site.metadata.name)!;
    const workers = all.filter(({ facts }) => !gateways.has(facts.name));
    return {
      site,
      nodeCount: workers.length,
      slices: planSlices(
        site,
        workers.map(({ facts }) => facts),
        world.slices,
      ),
      members: all.map(({ facts }) => facts.name).sort(),
      overlaps: overlaps.filter((overlap) => overlap.site === site.metadata.name),
      findings: findingsOf(all),
    };
  });
  const counts = new Map([...members].map(([name, all]) => [name, all.length]));
  const homelessCount = world.nodes.length - [...counts.values()].reduce((sum, count) => sum + count, 0);
  return {
    labels,
    homelessCount,
    sites,
    peerings: world.peerings.map((peering) => planPeering(peering, counts)),
    findings: findingsOf(nodes),
  };
};
