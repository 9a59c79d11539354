import { type GatewayPool, labels, nodeConditions, type Site } from '@unbounded/crds';
import { cutTexts, MOST_NODE_CONDITIONS, type Node, NODE_CONDITION_BOUNDS } from '@unbounded/kube';
import type { ClusterNode, ClusterPool, ClusterSite } from '@unbounded/status';

/** What of the cluster's objects the view is composed from. */

/** Conditions that the agent sets on its Node; True means trouble, but for those that say that something works. */
const OWN_PREFIX = 'Unbounded';
/** Written by site-membership, and for those that are no fault. */
const NO_FAULTS = new Set(['UnboundedNodeAccepted', 'UnboundedRelayed']);
/** True when it is well. */
const WELL_WHEN_TRUE = new Set<string>(['UnboundedEgress', nodeConditions.forwarding]);

type Condition = NonNullable<NonNullable<Node['status']>['conditions']>[number];

const isFault = ({ type, status }: Condition): boolean =>
  type.startsWith(OWN_PREFIX) && !NO_FAULTS.has(type) && status === (WELL_WHEN_TRUE.has(type) ? 'False' : 'True');

const readyOf = (conditions: readonly Condition[]): ClusterNode['ready'] => {
  const status = conditions.find(({ type }) => type === 'Ready')?.status;
  return status === 'True' || status === 'False' ? status : 'Unknown';
};

const clusterNode = ({ metadata, status }: Node, knownMs: number): ClusterNode => {
  const conditions = status?.conditions ?? [];
  const site = metadata.labels?.[labels.site];
  return {
    name: metadata.name,
    ...(site === undefined ? {} : { site }),
    ready: readyOf(conditions),
    knownMs,
    faults: conditions.filter(isFault).map(({ reason, message }) => ({ reason: reason ?? '', message: message ?? '' })),
  };
};

const clusterSite = ({ metadata }: Site): ClusterSite => ({ name: metadata.name });

const clusterPool = ({ metadata, status }: GatewayPool): ClusterPool => ({
  name: metadata.name,
  gateways: (status?.nodes ?? []).map(({ name }) => name).sort(),
  connectedSites: [...(status?.connectedSites ?? [])].sort(),
});

const byName = <T extends { readonly name: string }>(all: readonly T[]): T[] =>
  all.toSorted((a, b) => a.name.localeCompare(b.name));

export interface ClusterObjects {
  readonly nodes: readonly Node[];
  readonly sites: readonly Site[];
  readonly pools: readonly GatewayPool[];
}

/** @param knownMs since when a Node is known here */
export const clusterInputs = ({ nodes, sites, pools }: ClusterObjects, knownMs: (node: string) => number) => ({
  nodes: byName(nodes.map((node) => clusterNode(node, knownMs(node.metadata.name)))),
  sites: byName(sites.map(clusterSite)),
  pools: byName(pools.map(clusterPool)),
});

/** Of a Node what is read here, and no more than our programs write: a kubelet may write conditions of any length; the rest of 5,000 of them would cost memory. */
export const keptNode = ({ metadata, status }: Node): Node => {
  const { name, uid, resourceVersion, labels: all = {} } = metadata;
  const site = all[labels.site];
  return {
    metadata: { name, uid, resourceVersion, labels: site === undefined ? {} : { [labels.site]: site } },
    status: {
      conditions: (status?.conditions ?? [])
        .filter(({ type }) => type === 'Ready' || type.startsWith(OWN_PREFIX))
        .slice(0, MOST_NODE_CONDITIONS)
        .map((condition) => cutTexts(condition, NODE_CONDITION_BOUNDS)),
    },
  } as Node;
};
