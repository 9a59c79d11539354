import { findMember, parseWorld, planNode, type TopologyObjects } from '@unbounded/topology';
import type { KernelPlan } from '../kernel-plan.ts';
import { renderPlan } from '../render.ts';
import { publicKeyOf } from '@unbounded/wireguard';

/** Node a and gateway b of one site; behind b there is a block that a reaches by the group of b's pool. */

/** Private keys, by which probes are authenticated. */
export const KEYS = {
  a: 'qB1n3b0Jw2QG3r1bXrQ1yGm7d0m3o9gI1m8Q2v5kQ1g=',
  b: 'yH2u8xqQm0N4kqQ5mYv2v3mJ9m1t7w6pX0b4c8d2eVQ=',
} as const;
export type NodeName = keyof typeof KEYS;

export const NUMBERS: Readonly<Record<NodeName, number>> = { a: 1, b: 2 };
const ROUTED = '100.99.0.0/16';

const object = (kind: string, name: string, rest: object): object => ({
  apiVersion: 'net.unbounded-cloud.io/v1alpha1',
  kind,
  metadata: { name },
  ...rest,
});

const member = (name: NodeName): object => ({
  name,
  wireGuardPublicKey: publicKeyOf(KEYS[name]),
  internalIPs: [`10.7.0.${NUMBERS[name]}`],
  podCIDRs: [`100.${64 + NUMBERS[name]}.${NUMBERS[name]}.0/24`],
  tunnelProtocols: ['VXLAN', 'WireGuard'],
});

const objects = {
  sites: [
    object('Site', 's1', {
      spec: {
        nodeCidrs: ['10.7.0.0/24'],
        podCidrAssignments: [{ cidrBlocks: ['100.65.0.0/16', '100.66.0.0/16'] }],
        tunnelProtocol: 'VXLAN',
        healthCheckSettings: { transmitInterval: 200 },
      },
    }),
  ],
  slices: [object('SiteNodeSlice', 's1-0', { siteName: 's1', sliceIndex: 0, nodes: [member('a')] })],
  gatewayPools: [
    object('GatewayPool', 'p1', {
      spec: { type: 'Internal', nodeSelector: { pool: 'p1' }, routedCidrs: [ROUTED] },
      status: { nodes: [{ ...member('b'), siteName: 's1', externalIPs: [], gatewayWireguardPort: 51_821 }] },
    }),
  ],
  sitePeerings: [],
  assignments: [object('SiteGatewayPoolAssignment', 'a1', { spec: { sites: ['s1'], gatewayPools: ['p1'] } })],
  meshes: [],
  poolPeerings: [],
} as unknown as TopologyObjects;

export const planFor = (name: NodeName): KernelPlan => {
  const world = parseWorld(objects);
  return renderPlan('ebpf', planNode(world, { member: findMember(world, name)!, underlayMtuBytes: 1500 }));
};
