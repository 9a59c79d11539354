import { findMember, parseWorld, planNode, type TopologyObjects } from '@unbounded/topology';
import type { DataPathKind, KernelPlan } from './data-path/kernel-plan.ts';
import { renderPlan } from './data-path/render.ts';

/** Plans for the tests: a worker (and its gateway) of the first of two sites. */

type Protocol = 'WireGuard' | 'VXLAN' | 'GENEVE' | 'IPIP' | 'None';

const API = { apiVersion: 'net.unbounded-cloud.io/v1alpha1' } as const;
const ABILITIES = ['GENEVE', 'IPIP', 'None', 'VXLAN', 'WireGuard'];
const KEYS: Readonly<Record<string, string>> = {
  w1: '5ZqNUjYwTkSgDnjz9kVCoCjmVLGAXR3zR0O2jPuoL0o=',
  x1: 'vYQ0iZ6b0sPn4H4AjNPbbCvB3kUqyZ8oLQQ2ZGZVT2k=',
  g1: 'qM5QZ3wYc9D1ZP5m5vVHvyE7Y2yFJ2m2YJz9Z4TgYXU=',
  g2: 'b0n7Yx5dEzU0V2xW4cK2c4m3sV0mP8E2b1Jt9Wc1h3s=',
};

const member = (name: string, site: number, host: number) => ({
  name,
  wireGuardPublicKey: KEYS[name]!,
  internalIPs: [`10.${site}.0.${host}`],
  podCIDRs: [`100.${64 + site}.${host}.0/24`],
  tunnelProtocols: ABILITIES,
});

export const objectsFor = (protocol: Protocol): TopologyObjects =>
  ({
    sites: [1, 2].map((site) => ({
      ...API,
      kind: 'Site',
      metadata: { name: `s${site}` },
      spec: {
        nodeCidrs: [`10.${site}.0.0/24`],
        podCidrAssignments: [{ cidrBlocks: [`100.${64 + site}.0.0/16`] }],
        tunnelProtocol: protocol,
      },
    })),
    slices: [
      {
        ...API,
        kind: 'SiteNodeSlice',
        metadata: { name: 's1-0' },
        siteName: 's1',
        sliceIndex: 0,
        nodes: [member('w1', 1, 30), member('x1', 1, 31)],
      },
    ],
    gatewayPools: [1, 2].map((site) => ({
      ...API,
      kind: 'GatewayPool',
      metadata: { name: `p${site}` },
      spec: { type: 'External', nodeSelector: { pool: `p${site}` } },
      status: {
        nodes: [
          {
            ...member(`g${site}`, site, 20),
            siteName: `s${site}`,
            externalIPs: [`203.0.113.${site}`],
            gatewayWireguardPort: 51820 + site,
          },
        ],
      },
    })),
    sitePeerings: [],
    assignments: [1, 2].map((site) => ({
      ...API,
      kind: 'SiteGatewayPoolAssignment',
      metadata: { name: `a${site}` },
      spec: { sites: [`s${site}`], gatewayPools: [`p${site}`] },
    })),
    meshes: [],
    poolPeerings: [
      {
        ...API,
        kind: 'GatewayPoolPeering',
        metadata: { name: 'wan' },
        spec: { gatewayPools: ['p1', 'p2'], tunnelProtocol: protocol },
      },
    ],
  }) as unknown as TopologyObjects;

export const planFor = (node: string, protocol: Protocol = 'VXLAN', dataplane: DataPathKind = 'ebpf'): KernelPlan => {
  const world = parseWorld(objectsFor(protocol));
  return renderPlan(dataplane, planNode(world, { member: findMember(world, node)!, underlayMtuBytes: 1500 }));
};
