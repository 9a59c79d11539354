import {
  type ClusterStaticEgressIP,
  type ClusterStaticEgressRule,
  type EgressIPPool,
  type EgressNodeSlice,
  type EgressNodeSliceSpec,
  GROUP_VERSION,
  type StaticEgressIP,
  type StaticEgressRule,
} from '@unbounded/crds';
import { parseAddress, parsePrefix } from '@unbounded/ip';

import type { EgressNode, EgressPlan, EgressPod, EgressSnapshot } from './index.ts';

/** Clusters for tests: nodes n1, n2, … in 192.0.2.0/24 and 2001:db8::/64, pods in 10.244.0.0/16 and fd64::/32. */

const made = '2026-01-01T00:00:00Z';
export const NOW = '2026-02-01T00:00:00Z';

export const node = (number: number, rest: Partial<EgressNode> = {}): EgressNode => ({
  name: `n${number}`,
  uid: `uid-n${number}`,
  labels: {},
  addresses: [parseAddress(`192.0.2.${number}`), parseAddress(`2001:db8::${number}`)],
  podBlocks: ['10.244.0.0/16', 'fd64::/32'].map(parsePrefix),
  isAlive: true,
  isFenced: false,
  ...rest,
});

export const pod = (number: number, rest: Partial<EgressPod> = {}): EgressPod => ({
  uid: `uid-p${number}`,
  namespace: 'shop',
  name: `p${number}`,
  node: 'n1',
  labels: { app: 'web' },
  addresses: [parseAddress(`10.244.${number >> 8}.${number & 255}`)],
  isHostNetwork: false,
  isFinished: false,
  ...rest,
});

type Metadata = Partial<StaticEgressIP['metadata']>;

export const staticEgress = (
  rules: readonly StaticEgressRule[],
  metadata: Metadata = {},
  status: StaticEgressIP['status'] = {},
): StaticEgressIP => ({
  apiVersion: GROUP_VERSION,
  kind: 'StaticEgressIP',
  metadata: { name: 'partner', namespace: 'shop', creationTimestamp: made, ...metadata },
  spec: { rules },
  status,
});

export const clusterEgress = (
  rules: readonly ClusterStaticEgressRule[],
  metadata: Metadata = {},
): ClusterStaticEgressIP => ({
  apiVersion: GROUP_VERSION,
  kind: 'ClusterStaticEgressIP',
  metadata: { name: 'all', creationTimestamp: made, ...metadata },
  spec: { rules },
});

export const egressPool = (spec: EgressIPPool['spec'], metadata: Metadata = {}): EgressIPPool => ({
  apiVersion: GROUP_VERSION,
  kind: 'EgressIPPool',
  metadata: { name: 'public', creationTimestamp: made, ...metadata },
  spec,
});

export const SUBNETS = [
  { interface: 'eth0', cidr: '192.0.2.0/24' },
  { interface: 'eth0', cidr: '2001:db8::/64' },
] as const;

/** The slice in which an agent has reported its networks, and that says nothing yet. */
export const reportingSlice = (
  { name, uid }: EgressNode,
  subnets: readonly { interface: string; cidr: string }[] = SUBNETS,
): EgressNodeSlice => ({
  apiVersion: GROUP_VERSION,
  kind: 'EgressNodeSlice',
  metadata: { name: `${name}-0` },
  spec: { nodeName: name, nodeUID: uid, index: 0 },
  status: { subnets },
});

/** Rules of namespace shop over pods p1 to p3 on n1, and three nodes that have reported. */
export const snapshot = (rest: Partial<EgressSnapshot> = {}): EgressSnapshot => {
  const nodes = rest.nodes ?? [node(1), node(2), node(3)];
  return {
    rules: [],
    clusterRules: [],
    pools: [],
    nodes,
    slices: nodes.map((one) => reportingSlice(one)),
    formerGrants: [],
    pods: [pod(1), pod(2), pod(3)],
    services: [{ namespace: 'shop', name: 'web', selector: { app: 'web' } }],
    namespaces: [{ name: 'shop', labels: { team: 'shop' } }],
    cluster: {
      pods: ['10.244.0.0/16', 'fd64::/32'].map(parsePrefix),
      services: ['10.96.0.0/12'].map(parsePrefix),
    },
    claims: [],
    now: NOW,
    ...rest,
  };
};

/** What an agent does with its slices: it holds what it owns, and confirms what it was to release. */
export const confirmed = (slice: EgressNodeSlice): EgressNodeSlice => {
  const grants = (isRelease: boolean) =>
    (slice.spec.owned ?? [])
      .filter(({ release }) => (release === true) === isRelease)
      .map(({ address, epoch }) => ({ address, epoch }));
  return { ...slice, status: { ...slice.status, held: grants(false), released: grants(true) } };
};

const sliceObject = (
  name: string,
  spec: EgressNodeSliceSpec,
  former: EgressNodeSlice | undefined,
): EgressNodeSlice => ({
  apiVersion: GROUP_VERSION,
  kind: 'EgressNodeSlice',
  metadata: { name },
  spec,
  status: former?.status ?? (spec.index === 0 ? { subnets: SUBNETS } : {}),
});

/** The snapshot after the plan was written; agents have seen nothing of it yet. */
export const written = (before: EgressSnapshot, plan: EgressPlan): EgressSnapshot => {
  const former = new Map(before.slices.map((slice) => [slice.metadata.name, slice]));
  const withStatus = <T extends StaticEgressIP | ClusterStaticEgressIP>(object: T, key: string): T => {
    const { addresses, pods } = plan.ruleStatuses.get(key)!;
    return { ...object, status: { addresses, pods } };
  };
  return {
    ...before,
    rules: before.rules.map((rule) =>
      withStatus(rule, `StaticEgressIP/${rule.metadata.namespace}/${rule.metadata.name}`),
    ),
    clusterRules: before.clusterRules.map((rule) => withStatus(rule, `ClusterStaticEgressIP/${rule.metadata.name}`)),
    slices: [...plan.slices].map(([name, spec]) => sliceObject(name, spec, former.get(name))),
  };
};

export const withConfirmations = (before: EgressSnapshot): EgressSnapshot => ({
  ...before,
  slices: before.slices.map(confirmed),
});
