import type { FDBEntry, Neighbor, Network, NetworkEndpoint, ObjectMeta } from '@unbounded/crds';

/** An object, as far as it is looked at here. */
export interface Named {
  readonly metadata: ObjectMeta;
}

/** A Pod, as far as it is looked at here. */
export interface PlacedPod extends Named {
  readonly spec?: { readonly nodeName?: string };
}

/** A condition as nodes write it: of any type, and anything may be missing. */
interface NodeSaying {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

/** A Node, as far as it is looked at here. */
export interface HostingNode extends Named {
  readonly status?: { readonly conditions?: readonly NodeSaying[] };
}

/** What the controller of Networks knows of the cluster. */
export interface L2ClusterSnapshot {
  /** Every list below was read from its beginning to its end: what is missing in it is gone. */
  readonly isComplete: boolean;
  readonly networks: readonly Network[];
  readonly endpoints: readonly NetworkEndpoint[];
  readonly fdbEntries: readonly FDBEntry[];
  readonly neighbors: readonly Neighbor[];
  readonly nodes: readonly HostingNode[];
  readonly pods: readonly PlacedPod[];
}

/** Milliseconds since 1970; 0 where it is not known. */
export const createdMs = ({ metadata }: Named): number => {
  const ms = Date.parse(metadata.creationTimestamp ?? '');
  return Number.isNaN(ms) ? 0 : ms;
};
