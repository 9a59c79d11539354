import {
  type GatewayPool,
  nodeBlockLength,
  type PodCidrAssignment,
  type Site,
  type TunnelProtocol,
} from '@unbounded/crds';
import { comparePrefixes, containsPrefix, formatPrefix, type Prefix, tryParsePrefix } from '@unbounded/ip';
import { createConfinement } from './confinement.ts';
import { type HealthSpec, parseHealth } from './health-settings.ts';
import { createHolders, type Holding } from './holdings.ts';
import { withLocatorBlocks } from './locators.ts';
import { parseMembers } from './members.ts';
import { type ObjectReader, objectReader } from './object-reader.ts';
import { parseRelay } from './relay-model.ts';
import type { LinkScope, Member, PoolModel, SiteModel, TopologyObjects, World } from './world.ts';
import type { Problem } from './problem.ts';

interface LinkSettings {
  readonly tunnelProtocol?: TunnelProtocol | 'Auto' | undefined;
  readonly tunnelMTU?: number | undefined;
  readonly healthCheckSettings?: HealthSpec | undefined;
}

const scopeOf = (kind: LinkScope['kind'], name: string, spec: LinkSettings, problems: Problem[]): LinkScope => ({
  kind,
  name,
  protocol: spec.tunnelProtocol === 'Auto' ? undefined : spec.tunnelProtocol,
  mtuBytes: spec.tunnelMTU,
  health: parseHealth(`${kind} ${name}`, spec.healthCheckSettings, problems),
});

interface Named {
  readonly metadata: { readonly name: string };
}

const byName = <T extends Named>(objects: readonly T[]): T[] =>
  objects.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));

/** Disabled objects are as if they did not exist. */
const enabled = <T extends Named & { readonly spec: { readonly enabled?: boolean | undefined } }>(
  objects: readonly T[],
): T[] => byName(objects).filter((object) => object.spec.enabled !== false);

/** Of IPv4 also where there is no such pool. */
const blockLengthsOf = (assignment: PodCidrAssignment): number[] => {
  const first = assignment.cidrBlocks.flatMap((text) => tryParsePrefix(text) ?? []).find(({ family }) => family === 6);
  const ipv6 = assignment.nodeBlockSizes?.ipv6 ?? (first && nodeBlockLength(6, first.length, assignment));
  return [nodeBlockLength(4, 0, assignment), ...(ipv6 === undefined ? [] : [ipv6])];
};

const siteModel = (site: Site, read: ObjectReader): SiteModel => {
  const { name } = site.metadata;
  const where = `Site ${name}`;
  return {
    name,
    nodeCidrs: read.prefixes(`${where} spec.nodeCidrs`, site.spec.nodeCidrs),
    podCidrs: read.prefixes(
      `${where} cidrBlocks`,
      site.spec.podCidrAssignments.flatMap((assignment) => assignment.cidrBlocks),
    ),
    nonMasqueradeCidrs: read.prefixes(`${where} spec.nonMasqueradeCIDRs`, site.spec.nonMasqueradeCIDRs),
    allowedSourceCidrs: read.prefixes(`${where} spec.allowedSourceCidrs`, site.spec.allowedSourceCidrs),
    podTunnelCidrs: read.prefixes(`${where} spec.podTunnelCidrs`, site.spec.podTunnelCidrs),
    manageCni: site.spec.manageCniPlugin !== false,
    assignsBlocks: site.spec.podCidrAssignments.some(({ assignmentEnabled }) => assignmentEnabled !== false),
    blockLengths: new Set(site.spec.podCidrAssignments.flatMap(blockLengthsOf)),
    scope: scopeOf('Site', name, site.spec, read.problems),
  };
};

/** Without those inside a block of pods, whose packets a narrower block would draw away. A wider one leaves them theirs. */
const routedCidrsOf = ({ metadata: { name }, spec }: GatewayPool, sites: readonly SiteModel[], read: ObjectReader) =>
  read.prefixes(`GatewayPool ${name} spec.routedCidrs`, spec.routedCidrs).filter((prefix) => {
    const site = sites.find(({ podCidrs }) => podCidrs.some((block) => containsPrefix(block, prefix)));
    if (!site) return true;
    read.problems.push({
      reason: 'RoutedCidrsHoldPods',
      message: `GatewayPool ${name} spec.routedCidrs: ${formatPrefix(prefix)} is inside the cidrBlocks of Site ${site.name}, and is not routed: name blocks without pods`,
    });
    return false;
  });

const poolModel = (
  pool: GatewayPool,
  gateways: readonly Member[],
  { sites, read }: { readonly sites: readonly SiteModel[]; readonly read: ObjectReader },
): PoolModel => {
  const { name } = pool.metadata;
  return {
    name,
    external: pool.spec.type !== 'Internal',
    routedCidrs: routedCidrsOf(pool, sites, read),
    gateways,
    scope: scopeOf('GatewayPool', name, pool.spec, read.problems),
  };
};

/** Pods of two sites in one block: packets for them can only go to one. */
const overlapProblems = (sites: readonly SiteModel[]): Problem[] => {
  const blocks = sites
    .flatMap(({ name, podCidrs }) => podCidrs.map((prefix) => ({ name, prefix })))
    .sort((a, b) => comparePrefixes(a.prefix, b.prefix) || (a.name < b.name ? -1 : 1));
  const problems: Problem[] = [];
  let widest: { name: string; prefix: Prefix } | undefined;
  for (const block of blocks) {
    if (!widest || !containsPrefix(widest.prefix, block.prefix)) widest = block;
    else if (widest.name !== block.name)
      problems.push({
        reason: 'PodCIDROverlap',
        message: `Site ${block.name} cidrBlocks: ${formatPrefix(block.prefix)} overlaps ${formatPrefix(widest.prefix)} of Site ${widest.name}: every site needs blocks of its own`,
      });
  }
  return problems;
};

/**
 * Reads the objects once into what the planner works on.
 * @param held what the last plan gave to whom, which decides where the objects give something twice
 */
export const parseWorld = (objects: TopologyObjects, held: readonly Holding[] = []): World => {
  const read = objectReader();
  const scope = (kind: LinkScope['kind'], { metadata, spec }: Named & { readonly spec: LinkSettings }): LinkScope =>
    scopeOf(kind, metadata.name, spec, read.problems);
  const sites = withLocatorBlocks(
    byName(objects.sites).map((site) => siteModel(site, read)),
    objects.sites,
    read.problems,
  );
  const sitesByName = new Map(sites.map((one) => [one.name, one]));
  const holders = createHolders(held);
  const routed = objects.gatewayPools.flatMap(({ spec }) => spec.routedCidrs ?? []);
  const confinement = createConfinement(
    sitesByName,
    routed.flatMap((text) => tryParsePrefix(text) ?? []),
    holders,
  );
  const context = { sites: sitesByName, confinement, holders };
  const { gateways, workers } = parseMembers(byName(objects.gatewayPools), byName(objects.slices), context, read);
  const pools = byName(objects.gatewayPools).map((pool) =>
    poolModel(
      pool,
      gateways.filter((gateway) => gateway.pool === pool.metadata.name),
      { sites, read },
    ),
  );
  return {
    sites: sitesByName,
    confinement,
    pools: new Map(pools.map((pool) => [pool.name, pool])),
    workers,
    sitePeerings: enabled(objects.sitePeerings).map((peering) => ({
      scope: scope('SitePeering', peering),
      members: new Set(peering.spec.sites),
      mesh: peering.spec.meshNodes !== false,
    })),
    assignments: enabled(objects.assignments).map((assignment) => ({
      scope: scope('SiteGatewayPoolAssignment', assignment),
      members: new Set(assignment.spec.sites),
      pools: new Set(assignment.spec.gatewayPools),
    })),
    poolPeerings: enabled(objects.poolPeerings).map((peering) => ({
      scope: scope('GatewayPoolPeering', peering),
      members: new Set(peering.spec.gatewayPools),
    })),
    relay: parseRelay(objects.meshes, read.problems),
    problems: [...read.problems, ...overlapProblems(sites)],
  };
};
