import type { FDBEntry, Neighbor, NetworkEndpoint } from '@unbounded/crds';
import { createdMs, type L2ClusterSnapshot, type Named, type PlacedPod } from './cluster-snapshot.ts';
import { endpointKey } from './snapshot.ts';

/** Endpoints and entries that nobody stands for any more: whoever would remove them is gone. */

export type L2Entry = FDBEntry | Neighbor;

/** One thing that is gone, and what goes with it: the entries first, then the endpoint. */
export type Removal =
  /** The endpoint loses its finalizer as well: no agent is left that would take it off. Without one: entries for an endpoint elsewhere. */
  | {
      readonly reason: 'NodeGone';
      readonly node: string;
      readonly entries: readonly L2Entry[];
      readonly endpoint?: NetworkEndpoint;
    }
  /** The endpoint is deleted; its entries and its finalizer are its agent's. */
  | { readonly reason: 'PodGone'; readonly entries: readonly []; readonly endpoint: NetworkEndpoint }
  /**
   * The endpoint is deleted and loses its finalizer; its entries go behind it. PodElsewhere: its Pod is on another node than it says, so
   * that no agent of this Pod made it. Unreleased: its agent has not taken the finalizer off for long.
   */
  | {
      readonly reason: 'PodElsewhere' | 'Unreleased';
      readonly entries: readonly [];
      readonly endpoint: NetworkEndpoint;
    }
  /** NAMESPACE/NAME. */
  | { readonly reason: 'EndpointGone'; readonly endpointKey: string; readonly entries: readonly L2Entry[] }
  /** Nobody's for long: without a status, or with that of an endpoint that does not have them. How long is not for a plan to say. */
  | { readonly reason: 'Abandoned'; readonly entries: readonly L2Entry[] };

/** @param node the Node of that name, if there is one: it may have been made anew, and then the endpoint is of its predecessor */
export const isNodeGone = (endpoint: NetworkEndpoint, node: Named | undefined): boolean => {
  if (!node) return true;
  const { nodeUID } = endpoint.spec;
  return nodeUID === undefined ? createdMs(endpoint) < createdMs(node) : nodeUID !== node.metadata.uid;
};

/** @param pod the Pod of that name, if there is one: one that was made anew is not the endpoint's owner */
export const isPodGone = ({ metadata }: NetworkEndpoint, pod: Named | undefined): boolean => {
  if (!pod) return true;
  const owner = metadata.ownerReferences?.find(({ kind }) => kind === 'Pod');
  return owner !== undefined && owner.uid !== pod.metadata.uid;
};

/** A Pod never changes its node. */
export const isPodElsewhere = (endpoint: NetworkEndpoint, pod: PlacedPod | undefined): boolean => {
  const { nodeName = '' } = pod?.spec ?? {};
  return nodeName !== '' && nodeName !== endpoint.spec.node && !isPodGone(endpoint, pod);
};

/** Whether an entry is for what its endpoint has. */
export const isListed = (entry: L2Entry, { spec }: NetworkEndpoint): boolean =>
  entry.spec.network === spec.network &&
  ('mac' in entry.spec ? entry.spec.mac === spec.mac : spec.addresses.includes(entry.spec.ip));

export const podKey = ({ metadata, spec }: NetworkEndpoint): string => `${metadata.namespace ?? ''}/${spec.pod}`;

/** As {@link podKey} finds them. */
export const podsByKey = (pods: readonly PlacedPod[]): ReadonlyMap<string, PlacedPod> =>
  new Map(pods.map((pod) => [`${pod.metadata.namespace ?? ''}/${pod.metadata.name}`, pod]));

interface Known {
  readonly nodes: ReadonlyMap<string, Named>;
  readonly pods: ReadonlyMap<string, PlacedPod>;
  readonly endpoints: ReadonlyMap<string, NetworkEndpoint>;
}

const knownOf = ({ nodes, pods, endpoints }: L2ClusterSnapshot): Known => ({
  nodes: new Map(nodes.map((node) => [node.metadata.name, node])),
  pods: podsByKey(pods),
  endpoints: new Map(endpoints.map((endpoint) => [endpointKey(endpoint), endpoint])),
});

type Fate = 'Stays' | 'WithItsEndpoint' | 'NodeGone' | 'EndpointGone';
type BoundEntry = L2Entry & { readonly status: NonNullable<L2Entry['status']> };

/** One without a status has just been made, and its node is about to write it; or it never will. */
export const isBound = (entry: L2Entry): entry is BoundEntry => entry.status !== undefined;

const fateOf = ({ status }: BoundEntry, { nodes, endpoints }: Known): Fate => {
  const endpoint = endpoints.get(status.endpoint);
  if (!endpoint) return 'EndpointGone';
  const { node } = endpoint.spec;
  if (node === status.managingNode) return isNodeGone(endpoint, nodes.get(node)) ? 'WithItsEndpoint' : 'Stays';
  return nodes.has(status.managingNode) ? 'Stays' : 'NodeGone';
};

const byEndpoint = ({ status }: BoundEntry): string => status.endpoint;

const removeEndpoint = (
  endpoint: NetworkEndpoint,
  { nodes, pods }: Known,
  entries: readonly L2Entry[],
): readonly Removal[] => {
  const { node } = endpoint.spec;
  if (isNodeGone(endpoint, nodes.get(node))) return [{ reason: 'NodeGone', node, endpoint, entries }];
  const pod = pods.get(podKey(endpoint));
  if (isPodElsewhere(endpoint, pod)) return [{ reason: 'PodElsewhere', endpoint, entries: [] }];
  const isUnderWay = endpoint.metadata.deletionTimestamp !== undefined;
  if (isUnderWay || !isPodGone(endpoint, pod)) return [];
  return [{ reason: 'PodGone', endpoint, entries: [] }];
};

/** Nothing, unless all lists are complete. What an API server says right now decides in the end: lists may be of different moments. */
export const planRemovals = (snapshot: L2ClusterSnapshot): readonly Removal[] => {
  if (!snapshot.isComplete) return [];
  const known = knownOf(snapshot);
  const bound = [...snapshot.fdbEntries, ...snapshot.neighbors].filter(isBound);
  const fates = Map.groupBy(bound, (entry) => fateOf(entry, known));
  const withEndpoints = Map.groupBy(fates.get('WithItsEndpoint') ?? [], byEndpoint);
  const ofNodes = Map.groupBy(fates.get('NodeGone') ?? [], ({ status }) => status.managingNode);
  const ofEndpoints = Map.groupBy(fates.get('EndpointGone') ?? [], byEndpoint);
  return [
    ...snapshot.endpoints.flatMap((endpoint) =>
      removeEndpoint(endpoint, known, withEndpoints.get(endpointKey(endpoint)) ?? []),
    ),
    ...[...ofNodes].map(([node, entries]) => ({ reason: 'NodeGone', node, entries }) as const),
    ...[...ofEndpoints].map(([key, entries]) => ({ reason: 'EndpointGone', endpointKey: key, entries }) as const),
  ];
};
