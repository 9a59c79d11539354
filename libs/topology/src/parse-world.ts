import type { GatewayPool, Site, TunnelProtocol } from '@unbounded/crds';
import { comparePrefixes, containsPrefix, formatPrefix, type Prefix } from '@unbounded/ip';
import { type HealthSpec, parseHealth } from './health-settings.ts';
import { parseMembers } from './members.ts';
import { type ObjectReader, objectReader } from './object-reader.ts';
import { parseRelay } from './relay.ts';
import type { LinkScope, Member, PoolModel, Problem, SiteModel, TopologyObjects, World } from './world.ts';

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
    manageCni: site.spec.manageCniPlugin !== false,
    scope: scopeOf('Site', name, site.spec, read.problems),
  };
};

const poolModel = (pool: GatewayPool, gateways: readonly Member[], read: ObjectReader): PoolModel => {
  const { name } = pool.metadata;
  return {
    name,
    external: pool.spec.type !== 'Internal',
    routedCidrs: read.prefixes(`GatewayPool ${name} spec.routedCidrs`, pool.spec.routedCidrs),
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
        reason: 'OverlappingPodCIDRs',
        message: `Site ${block.name} cidrBlocks: ${formatPrefix(block.prefix)} overlaps ${formatPrefix(widest.prefix)} of Site ${widest.name}: every site needs blocks of its own`,
      });
  }
  return problems;
};

/** Reads the objects once into what the planner works on. */
export const parseWorld = (objects: TopologyObjects): World => {
  const read = objectReader();
  const scope = (kind: LinkScope['kind'], { metadata, spec }: Named & { readonly spec: LinkSettings }): LinkScope =>
    scopeOf(kind, metadata.name, spec, read.problems);
  const sites = byName(objects.sites).map((site) => siteModel(site, read));
  const { gateways, workers } = parseMembers(byName(objects.gatewayPools), byName(objects.slices), read);
  const pools = byName(objects.gatewayPools).map((pool) =>
    poolModel(
      pool,
      gateways.filter((gateway) => gateway.pool === pool.metadata.name),
      read,
    ),
  );
  return {
    sites: new Map(sites.map((site) => [site.name, site])),
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
