import type {
  Gateway,
  GatewayPool,
  GatewayPoolPeering,
  Site,
  SiteGatewayPoolAssignment,
  SiteNode,
  SiteNodeSlice,
  SitePeering,
  TunnelProtocol,
} from '@unbounded/crds';
import { AddressSyntaxError, comparePrefixes, parsePrefix, type Prefix } from '@unbounded/ip';

/** The objects of the cluster that decide about the network, as the API server holds them. */
export interface TopologyObjects {
  readonly sites: readonly Site[];
  readonly slices: readonly SiteNodeSlice[];
  readonly gatewayPools: readonly GatewayPool[];
  readonly sitePeerings: readonly SitePeering[];
  readonly assignments: readonly SiteGatewayPoolAssignment[];
  readonly poolPeerings: readonly GatewayPoolPeering[];
}

/** Something that an operator should know; it never stops the rest. */
export interface Problem {
  /** CamelCase, the reason of a condition or an Event. */
  readonly reason: string;
  readonly message: string;
}

/** What an object says about the links that it governs. */
export interface LinkScope {
  readonly kind: 'Site' | 'SitePeering' | 'SiteGatewayPoolAssignment' | 'GatewayPool' | 'GatewayPoolPeering';
  readonly name: string;
  /** Undefined: nothing, or Auto. */
  readonly protocol: TunnelProtocol | undefined;
  readonly mtuBytes: number | undefined;
}

export interface SiteModel {
  readonly name: string;
  readonly nodeCidrs: readonly Prefix[];
  /** Blocks from which the site's pods have their addresses: what is routed to the site. */
  readonly podCidrs: readonly Prefix[];
  readonly nonMasqueradeCidrs: readonly Prefix[];
  readonly manageCni: boolean;
  readonly scope: LinkScope;
}

/** A node as its peers see it. */
export interface Member {
  readonly name: string;
  readonly site: string;
  readonly publicKey: string | undefined;
  readonly internalIps: readonly string[];
  readonly externalIps: readonly string[];
  readonly podCidrs: readonly Prefix[];
  /** Undefined: the node has not said what it can do. */
  readonly protocols: readonly string[] | undefined;
  /** Set for gateways. */
  readonly pool: string | undefined;
  /** UDP port on which this gateway's dedicated interfaces meet. */
  readonly gatewayPort: number | undefined;
}

export interface PoolModel {
  readonly name: string;
  readonly external: boolean;
  readonly routedCidrs: readonly Prefix[];
  readonly gateways: readonly Member[];
  readonly scope: LinkScope;
}

/** A set of names that an enabled object joins. */
export interface Join {
  readonly scope: LinkScope;
  readonly members: ReadonlySet<string>;
}

export interface World {
  readonly sites: ReadonlyMap<string, SiteModel>;
  readonly pools: ReadonlyMap<string, PoolModel>;
  /** Nodes of the slices: all but gateways. */
  readonly workers: readonly Member[];
  readonly sitePeerings: readonly (Join & { readonly mesh: boolean })[];
  readonly assignments: readonly (Join & { readonly pools: ReadonlySet<string> })[];
  readonly poolPeerings: readonly Join[];
  readonly problems: readonly Problem[];
}

interface LinkSettings {
  readonly tunnelProtocol?: TunnelProtocol | 'Auto' | undefined;
  readonly tunnelMTU?: number | undefined;
}

const scopeOf = (kind: LinkScope['kind'], name: string, spec: LinkSettings): LinkScope => ({
  kind,
  name,
  protocol: spec.tunnelProtocol === 'Auto' ? undefined : spec.tunnelProtocol,
  mtuBytes: spec.tunnelMTU,
});

const byName = <T extends { readonly metadata: { readonly name: string } }>(objects: readonly T[]): T[] =>
  objects.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));

/** Reads prefixes; what is no prefix is left out and reported, the rest counts. */
const prefixReader =
  (problems: Problem[]) =>
  (where: string, texts: readonly string[] | undefined): Prefix[] =>
    (texts ?? [])
      .flatMap((text) => {
        try {
          return [parsePrefix(text)];
        } catch (error) {
          if (!(error instanceof AddressSyntaxError)) throw error;
          problems.push({ reason: 'InvalidCIDR', message: `${where}: ${error.message}` });
          return [];
        }
      })
      .sort(comparePrefixes);

type ReadPrefixes = ReturnType<typeof prefixReader>;

const siteModel = (site: Site, read: ReadPrefixes): SiteModel => {
  const { name } = site.metadata;
  const where = `Site ${name}`;
  return {
    name,
    nodeCidrs: read(`${where} spec.nodeCidrs`, site.spec.nodeCidrs),
    podCidrs: read(
      `${where} cidrBlocks`,
      site.spec.podCidrAssignments.flatMap((assignment) => assignment.cidrBlocks),
    ),
    nonMasqueradeCidrs: read(`${where} spec.nonMasqueradeCIDRs`, site.spec.nonMasqueradeCIDRs),
    manageCni: site.spec.manageCniPlugin !== false,
    scope: scopeOf('Site', name, site.spec),
  };
};

const memberOf = (node: SiteNode | Gateway, site: string, read: ReadPrefixes): Member => ({
  name: node.name,
  site,
  publicKey: node.wireGuardPublicKey || undefined,
  internalIps: node.internalIPs ?? [],
  externalIps: 'externalIPs' in node ? (node.externalIPs ?? []) : [],
  podCidrs: read(`node ${node.name} podCIDRs`, node.podCIDRs),
  protocols: node.tunnelProtocols,
  pool: undefined,
  gatewayPort: undefined,
});

const poolModel = (pool: GatewayPool, read: ReadPrefixes): PoolModel => {
  const { name } = pool.metadata;
  const gateways = (pool.status?.nodes ?? []).map((gateway) => ({
    ...memberOf(gateway, gateway.siteName ?? '', read),
    pool: name,
    gatewayPort: gateway.gatewayWireguardPort,
  }));
  return {
    name,
    external: pool.spec.type !== 'Internal',
    routedCidrs: read(`GatewayPool ${name} spec.routedCidrs`, pool.spec.routedCidrs),
    gateways: gateways.sort((a, b) => (a.name < b.name ? -1 : 1)),
    scope: scopeOf('GatewayPool', name, pool.spec),
  };
};

/** Reads the objects once into what the planner works on. Disabled objects are as if they did not exist. */
export const parseWorld = (objects: TopologyObjects): World => {
  const problems: Problem[] = [];
  const read = prefixReader(problems);
  const enabled = <
    T extends {
      readonly spec: { readonly enabled?: boolean | undefined };
      readonly metadata: { readonly name: string };
    },
  >(
    all: readonly T[],
  ): T[] => byName(all).filter((object) => object.spec.enabled !== false);
  const pools = byName(objects.gatewayPools).map((pool) => poolModel(pool, read));
  const gatewayNames = new Set(pools.flatMap((pool) => pool.gateways.map(({ name }) => name)));
  const workers = byName(objects.slices)
    .flatMap((slice) => (slice.nodes ?? []).map((node) => memberOf(node, slice.siteName, read)))
    // While a node changes its role it may stand in a slice and in a pool; the pool decides.
    .filter(({ name }) => !gatewayNames.has(name))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    sites: new Map(byName(objects.sites).map((site) => [site.metadata.name, siteModel(site, read)])),
    pools: new Map(pools.map((pool) => [pool.name, pool])),
    workers,
    sitePeerings: enabled(objects.sitePeerings).map(({ metadata, spec }) => ({
      scope: scopeOf('SitePeering', metadata.name, spec),
      members: new Set(spec.sites),
      mesh: spec.meshNodes !== false,
    })),
    assignments: enabled(objects.assignments).map(({ metadata, spec }) => ({
      scope: scopeOf('SiteGatewayPoolAssignment', metadata.name, spec),
      members: new Set(spec.sites),
      pools: new Set(spec.gatewayPools),
    })),
    poolPeerings: enabled(objects.poolPeerings).map(({ metadata, spec }) => ({
      scope: scopeOf('GatewayPoolPeering', metadata.name, spec),
      members: new Set(spec.gatewayPools),
    })),
    problems,
  };
};
