import { type GatewayPool, type GatewayPoolNode, GROUP_VERSION, type SiteGatewayPoolAssignment } from '@unbounded/crds';
import { nodeFacts } from '@unbounded/membership';
import type { GatewayNode, GatewayWorld } from './gateways.plan.ts';
import type { ObservedReport } from './pool-conditions.plan.ts';
import { createReportWatch } from './report-watch.ts';

/** Objects and nodes from which specs have gateways planned. */

export const keyOf = (name: string): string => Buffer.alloc(32, name.padEnd(8, '-')).toString('base64');
export const object = <K extends string, S>(kind: K, name: string, spec: S) =>
  ({ apiVersion: GROUP_VERSION, kind, metadata: { name, uid: `uid-${name}`, generation: 3 }, spec }) as const;
export const pool = (name: string, spec: Partial<GatewayPool['spec']> = {}): GatewayPool =>
  object('GatewayPool', name, { nodeSelector: { gateway: name }, ...spec });
export const assign = (sites: string[], gatewayPools: string[], enabled?: boolean): SiteGatewayPoolAssignment =>
  object('SiteGatewayPoolAssignment', 'x', { sites, gatewayPools, ...(enabled === undefined ? {} : { enabled }) });

export const SITES = ['a', 'b', 'c', 'd'].map((name, i) =>
  object('Site', name, {
    nodeCidrs: [`10.${i + 1}.0.0/16`],
    podCidrAssignments: [{ cidrBlocks: [`100.${65 + i}.0.0/16`] }],
  }),
);
/** An External pool with a gateway in a Site of its own. */
export const reachedPool = (name: string, i: number, spec: Partial<GatewayPool['spec']> = {}): GatewayPool => ({
  ...pool(name, spec),
  status: {
    nodes: [
      {
        name: `${name}-gw`,
        siteName: SITES[i]!.metadata.name,
        wireGuardPublicKey: keyOf(`${name}-gw`),
        internalIPs: [`10.${i + 1}.0.1`],
        externalIPs: spec.type === 'Internal' ? [] : [`192.0.2.${i + 1}`],
        podCIDRs: [`100.${65 + i}.1.0/24`],
      },
    ],
  },
});

export const node = (
  name: string,
  labels: Record<string, string>,
  extra: Partial<GatewayNode> & { key?: boolean } = {},
): GatewayNode => ({
  facts: nodeFacts({
    metadata: {
      name,
      uid: `uid-${name}`,
      labels,
      annotations: extra.key === false ? {} : { 'net.unbounded-cloud.io/wg-pubkey': keyOf(name) },
    },
    spec: { podCIDRs: ['100.64.0.0/24', 'fd00::/64'] },
    status: {
      addresses: [
        { type: 'InternalIP', address: '10.1.0.1' },
        { type: 'ExternalIP', address: '192.0.2.1' },
      ],
    },
  }),
  isTainted: false,
  ...extra,
});
export const world = (parts: Partial<GatewayWorld>): GatewayWorld => ({
  nodes: [],
  sites: [],
  pools: [],
  assignments: [],
  sitePeerings: [],
  poolPeerings: [],
  meshes: [],
  poolNodes: [],
  slices: [],
  ...parts,
});

/** What a watcher of these objects knows of them, on a clock of its own. */
export const seen = (observed: ObservedReport, notForwarding = new Map<string, string>()) => ({
  observed,
  notForwarding,
});
export const watching = () => {
  let clockMs = 5000;
  const watch = createReportWatch(() => clockMs);
  return {
    observed: (name: string) => watch.of(name),
    see: (objects: readonly GatewayPoolNode[], afterMs = 0): void => {
      clockMs += afterMs;
      watch.observe(objects);
    },
    pass: (ms: number): void => void (clockMs += ms),
  };
};
export const poolNodeOf = (name: string, lastUpdated?: string): GatewayPoolNode => ({
  ...object('GatewayPoolNode', name, { nodeName: name, gatewayPool: 'p' }),
  ...(lastUpdated === undefined ? {} : { status: { lastUpdated } }),
});
