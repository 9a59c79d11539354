import { annotations, type GatewayPool, GROUP_VERSION, type Site, type SiteNodeSlice } from '@unbounded/crds';

import { nodeFacts, type NodeFacts } from './index.ts';

export const keyOf = (seed: number): string => Buffer.alloc(32, seed).toString('base64');
export const site = (name: string, nodeCidr: string, block: string, createdAt = '2026-01-01T00:00:00Z'): Site => ({
  apiVersion: GROUP_VERSION,
  kind: 'Site',
  metadata: { name, creationTimestamp: createdAt },
  spec: { nodeCidrs: [nodeCidr], podCidrAssignments: [{ cidrBlocks: [block] }] },
});
export const sites = [site('a', '10.1.0.0/16', '100.64.0.0/16'), site('b', '10.2.0.0/16', '100.65.0.0/16')];

/** What a Node states. */
export interface Init {
  readonly ip?: readonly string[];
  readonly external?: readonly string[];
  readonly key?: number;
  readonly next?: number;
  readonly pods?: readonly string[];
  /** Greater is younger. */
  readonly age?: number;
  readonly labels?: Record<string, string>;
  readonly annotated?: string;
  readonly locator?: string;
}
export const node = (
  name: string,
  { ip = [], external = [], key, next, pods = [], age = 5, labels = {}, annotated, locator }: Init,
): NodeFacts =>
  nodeFacts({
    metadata: {
      name,
      uid: `uid-${name}`,
      creationTimestamp: `2026-01-0${age}T00:00:00Z`,
      labels,
      annotations: {
        ...(key === undefined ? {} : { [annotations.wireGuardPublicKey]: keyOf(key) }),
        ...(next === undefined ? {} : { [annotations.wireGuardNextPublicKey]: keyOf(next) }),
        ...(annotated === undefined ? {} : { [annotations.externalAddress]: annotated }),
        ...(locator === undefined ? {} : { [annotations.l2Locator]: locator }),
      },
    },
    spec: { podCIDRs: pods },
    status: {
      addresses: [
        ...ip.map((address) => ({ type: 'InternalIP', address })),
        ...external.map((address) => ({ type: 'ExternalIP', address })),
      ],
    },
  });
export const slice = (nodes: SiteNodeSlice['nodes'], siteName = 'a'): SiteNodeSlice => ({
  apiVersion: GROUP_VERSION,
  kind: 'SiteNodeSlice',
  metadata: { name: `${siteName}-0` },
  siteName,
  sliceIndex: 0,
  ...(nodes ? { nodes } : {}),
});
export const pool = (nodes: NonNullable<GatewayPool['status']>['nodes'] = []): GatewayPool => ({
  apiVersion: GROUP_VERSION,
  kind: 'GatewayPool',
  metadata: { name: 'p' },
  spec: { nodeSelector: { gw: 'p' } },
  status: { nodes },
});
