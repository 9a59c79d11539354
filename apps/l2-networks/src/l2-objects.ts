import {
  annotations,
  type FDBEntry,
  fdbEntryKind,
  type Neighbor,
  neighborKind,
  networkEndpointKind,
  networkKind,
} from '@unbounded/crds';
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

/** That it is there. */
export const keptPod = (pod: Pod): Pod => identityOf(pod);
export const podPrint = ({ metadata }: Pod): string => metadata.uid ?? '';

const tunnelMtu = ({ metadata }: Node): string | undefined => metadata.annotations?.[annotations.tunnelMtu];

export const keptNode = (node: Node): Node => {
  const identity = identityOf(node);
  const mtu = tunnelMtu(node);
  const kept = mtu === undefined ? {} : { annotations: { [annotations.tunnelMtu]: mtu } };
  return { ...identity, metadata: { ...identity.metadata, ...kept } };
};
export const nodePrint = (node: Node): string => `${node.metadata.uid} ${tunnelMtu(node) ?? ''}`;

/** That traffic showed an entry once more concerns nobody here. */
export const entryPrint = ({ status }: FDBEntry | Neighbor): string => `${status?.managingNode} ${status?.endpoint}`;
