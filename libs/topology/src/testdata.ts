import type { Gateway, GatewayPool, Site, SiteNode, TunnelProtocol } from '@unbounded/crds';
import type { NodePlan } from './plan.ts';
import type { TopologyObjects } from './world/world.ts';

/** Small clusters for the tests: site N has LAN 10.N.0.0/24 and pods 100.(64+N).0.0/16. */

type Protocol = TunnelProtocol | 'Auto';

const API = { apiVersion: 'net.unbounded-cloud.io/v1alpha1' } as const;

/** A key that is different for every node and looks like one. */
export const keyOf = (node: string): string => `${node.padEnd(43, 'A').slice(0, 43)}=`;

export const site = (index: number, protocol?: Protocol): Site => ({
  ...API,
  kind: 'Site',
  metadata: { name: `s${index}` },
  spec: {
    nodeCidrs: [`10.${index}.0.0/24`],
    podCidrAssignments: [{ cidrBlocks: [`100.${64 + index}.0.0/16`] }],
    ...(protocol ? { tunnelProtocol: protocol } : {}),
  },
});

export const worker = (
  siteIndex: number,
  index: number,
  protocols: readonly string[] = ['VXLAN', 'GENEVE', 'IPIP', 'None', 'WireGuard'],
): SiteNode => ({
  name: `s${siteIndex}-w${index}`,
  wireGuardPublicKey: keyOf(`s${siteIndex}w${index}`),
  internalIPs: [`10.${siteIndex}.0.${30 + index}`],
  podCIDRs: [`100.${64 + siteIndex}.${30 + index}.0/24`],
  tunnelProtocols: [...protocols],
});

/** 203.0.113.100 and up, and what follows when that block is full. */
const externalOf = (siteIndex: number, index: number): string => {
  const host = 100 + 10 * siteIndex + index;
  return `203.0.${113 + (host >> 8)}.${host & 255}`;
};

export const gateway = (siteIndex: number, index: number): Gateway => ({
  name: `s${siteIndex}-g${index}`,
  siteName: `s${siteIndex}`,
  wireGuardPublicKey: keyOf(`s${siteIndex}g${index}`),
  internalIPs: [`10.${siteIndex}.0.${20 + index}`],
  externalIPs: [externalOf(siteIndex, index)],
  podCIDRs: [`100.${64 + siteIndex}.${20 + index}.0/24`],
  gatewayWireguardPort: 51820 + 10 * siteIndex + index,
  tunnelProtocols: ['VXLAN', 'GENEVE', 'IPIP', 'None', 'WireGuard'],
});

export const pool = (name: string, nodes: readonly Gateway[], spec: object = {}): GatewayPool => ({
  ...API,
  kind: 'GatewayPool',
  metadata: { name },
  spec: { type: 'External', nodeSelector: { pool: name }, ...spec },
  status: { nodes: [...nodes] },
});

export const slice = (siteIndex: number, nodes: readonly SiteNode[]) => ({
  ...API,
  kind: 'SiteNodeSlice' as const,
  metadata: { name: `s${siteIndex}-0` },
  siteName: `s${siteIndex}`,
  sliceIndex: 0,
  nodes: [...nodes],
});

export const join = <K extends 'assignments' | 'poolPeerings' | 'sitePeerings'>(
  kind: K,
  name: string,
  spec: object,
): TopologyObjects[K][number] => ({ ...API, kind, metadata: { name }, spec }) as unknown as TopologyObjects[K][number];

export interface ClusterShape {
  readonly sites: number;
  readonly gateways: number;
  readonly workers: number;
  readonly protocol?: Protocol;
}

/** Sites that are joined by a pool each, all pools peered with each other. */
export const cluster = ({ sites, gateways, workers, protocol }: ClusterShape): TopologyObjects => {
  const each = <T>(count: number, make: (index: number) => T): T[] =>
    Array.from({ length: count }, (_, index) => make(index + 1));
  return {
    sites: each(sites, (s) => site(s, protocol)),
    slices: each(sites, (s) =>
      slice(
        s,
        each(workers, (w) => worker(s, w)),
      ),
    ),
    gatewayPools: each(sites, (s) =>
      pool(
        `p${s}`,
        each(gateways, (g) => gateway(s, g)),
      ),
    ),
    sitePeerings: [],
    assignments: each(sites, (s) => join('assignments', `a${s}`, { sites: [`s${s}`], gatewayPools: [`p${s}`] })),
    meshes: [],
    poolPeerings: sites > 1 ? [join('poolPeerings', 'all', { gatewayPools: each(sites, (s) => `p${s}`) })] : [],
  };
};

/** What the kernel has to hold: routes, map entries, members of groups, peers with their blocks, probes. */
export const sizeOf = ({ blocks, contained, direct, tunnels, groups, probes, wireGuard }: NodePlan): number =>
  blocks.length +
  contained.length +
  direct.length +
  tunnels.length +
  probes.length +
  groups.reduce((sum, { members }) => sum + members.length, 0) +
  wireGuard.flatMap(({ peers }) => peers).reduce((sum, { allowedIps }) => sum + 1 + allowedIps.length, 0);

type Families = '4' | '6' | '46';

/** The same address or block as IPv6: 10.N.0.H is fd00:N::H, 100.P.H.0/24 fd64:P:H::/64, 203.0.113.X 2001:db8::X. */
const asIpv6 = (text: string): string => {
  const [a, b, c, last] = text.split('.') as [string, string, string, string];
  const [d, length] = last.split('/') as [string, string?];
  if (a === '203') return `2001:db8::${d}`;
  if (a === '10') return length === undefined ? `fd00:${b}::${d}` : `fd00:${b}::/64`;
  return length === '16' ? `fd64:${b}::/32` : `fd64:${b}:${c}::/64`;
};

const inBoth = (families: Families, texts: readonly string[] | undefined): string[] => [
  ...(families.includes('4') ? (texts ?? []) : []),
  ...(families.includes('6') ? (texts ?? []).map(asIpv6) : []),
];

/** The same cluster with its pods and its underlay in other families. */
export const inFamilies = (objects: TopologyObjects, overlay: Families, underlay: Families): TopologyObjects => {
  const moved = <T extends SiteNode | Gateway>(node: T): T => ({
    ...node,
    internalIPs: inBoth(underlay, node.internalIPs),
    podCIDRs: inBoth(overlay, node.podCIDRs),
    ...('externalIPs' in node ? { externalIPs: inBoth(underlay, node.externalIPs) } : {}),
  });
  return {
    ...objects,
    sites: objects.sites.map((own) => ({
      ...own,
      spec: {
        ...own.spec,
        nodeCidrs: inBoth(underlay, own.spec.nodeCidrs),
        podCidrAssignments: own.spec.podCidrAssignments.map(({ cidrBlocks }) => ({
          cidrBlocks: inBoth(overlay, cidrBlocks),
        })),
      },
    })),
    slices: objects.slices.map((own) => ({ ...own, nodes: (own.nodes ?? []).map(moved) })),
    gatewayPools: objects.gatewayPools.map((own) => ({
      ...own,
      status: { nodes: (own.status?.nodes ?? []).map(moved) },
    })),
  };
};
