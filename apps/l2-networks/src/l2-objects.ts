import {
  annotations,
  type FDBEntry,
  fdbEntryKind,
  type Neighbor,
  neighborKind,
  networkEndpointKind,
  networkKind,
} from '@unbounded/crds';
import { L2_NODE_CONDITION } from '@unbounded/l2';
import { type Cluster, type KubeObject, type Node, nodes, type Pod, pods, resourceOf } from '@unbounded/kube';

/** What the program reads, what of it is kept in memory, and which updates count. */

export const L2_RESOURCES = {
  networks: resourceOf(networkKind),
  endpoints: resourceOf(networkEndpointKind),
  fdbEntries: resourceOf(fdbEntryKind),
  neighbors: resourceOf(neighborKind),
  nodes,
  pods,
} as const;

export const clientsOf = (cluster: Pick<Cluster, 'client'>) => ({
  networks: cluster.client(L2_RESOURCES.networks),
  endpoints: cluster.client(L2_RESOURCES.endpoints),
  fdbEntries: cluster.client(L2_RESOURCES.fdbEntries),
  neighbors: cluster.client(L2_RESOURCES.neighbors),
  nodes: cluster.client(L2_RESOURCES.nodes),
  pods: cluster.client(L2_RESOURCES.pods),
});

const identityOf = ({ apiVersion, kind, metadata }: KubeObject): KubeObject => {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata;
  return {
    ...(apiVersion === undefined ? {} : { apiVersion }),
    ...(kind === undefined ? {} : { kind }),
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
    },
  };
};

/** That it is there, and where. */
export const keptPod = (pod: Pod): Pod => {
  const { nodeName } = pod.spec ?? {};
  return { ...identityOf(pod), ...(nodeName === undefined ? {} : { spec: { nodeName, containers: [] } }) };
};
export const podPrint = ({ metadata, spec }: Pod): string => `${metadata.uid} ${spec?.nodeName}`;

/** What the node says of its part of Networks. */
const forwarding = ({ status }: Node) => (status?.conditions ?? []).filter(({ type }) => type === L2_NODE_CONDITION);

const tunnelMtu = ({ metadata }: Node): string | undefined => metadata.annotations?.[annotations.tunnelMtu];

export const keptNode = (node: Node): Node => {
  const identity = identityOf(node);
  const mtu = tunnelMtu(node);
  const kept = mtu === undefined ? {} : { annotations: { [annotations.tunnelMtu]: mtu } };
  const conditions = forwarding(node);
  return {
    ...{ ...identity, metadata: { ...identity.metadata, ...kept } },
    ...(conditions.length > 0 && { status: { conditions } }),
  };
};
/** When a condition was last heard of is no change of it. */
export const nodePrint = (node: Node): string => {
  const said = forwarding(node).map(({ status, reason, message }) => `${status} ${reason} ${message}`);
  return [node.metadata.uid, tunnelMtu(node) ?? '', ...said].join(' ');
};

/** That traffic showed an entry once more concerns nobody here. */
export const entryPrint = ({ status }: FDBEntry | Neighbor): string => `${status?.managingNode} ${status?.endpoint}`;
