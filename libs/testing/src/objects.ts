import { createHash } from 'node:crypto';

import type { GatewayPool, Site } from '@unbounded/crds';
import type { Node, ResourceClient } from '@unbounded/kube';

const apiVersion = 'net.unbounded-cloud.io/v1alpha1';

/** A Site with sensible pools; `spec` replaces what a test is about. */
export const siteObject = (name: string, spec: Partial<Site['spec']> = {}): Site => ({
  apiVersion,
  kind: 'Site',
  metadata: { name },
  spec: { nodeCidrs: ['10.1.0.0/16'], podCidrAssignments: [{ cidrBlocks: ['100.64.0.0/16'] }], ...spec },
});

export const poolObject = (name: string, spec: Partial<GatewayPool['spec']> = {}): GatewayPool => ({
  apiVersion,
  kind: 'GatewayPool',
  metadata: { name },
  spec: { nodeSelector: { gateway: name }, ...spec },
});

export interface NodeInit {
  readonly name: string;
  readonly internalIPs?: readonly string[];
  readonly externalIPs?: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly podCIDRs?: readonly string[];
}

const addressesOf = ({ internalIPs = [], externalIPs = [] }: NodeInit) => [
  ...internalIPs.map((address) => ({ type: 'InternalIP', address })),
  ...externalIPs.map((address) => ({ type: 'ExternalIP', address })),
];

export const nodeObject = (init: NodeInit): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: {
    name: init.name,
    ...(init.labels ? { labels: init.labels } : {}),
    ...(init.annotations ? { annotations: init.annotations } : {}),
  },
  ...(init.podCIDRs ? { spec: { podCIDR: init.podCIDRs[0]!, podCIDRs: init.podCIDRs } } : {}),
  status: { addresses: addressesOf(init) },
});

/** Creates a Node with its addresses. */
export const createNode = async (nodes: ResourceClient<Node>, init: NodeInit): Promise<void> => {
  await nodes.create(nodeObject(init));
};

/** A WireGuard public key for tests: 32 bytes that depend on the name. */
export const publicKeyFor = (name: string): string => createHash('sha256').update(name).digest('base64');
