import type { EgressNodeSlice } from '@unbounded/crds';
import type { OverlayPeers } from '../../kernel/overlay-peers.ts';

/** What the plan of a node is made from. */
export interface NodeInputs {
  readonly node: string;
  /** Of this node; those of a Node that had its name before are not. */
  readonly slices: readonly EgressNodeSlice[];
  /** Addresses of the slices that the node may have now. */
  readonly granted: ReadonlySet<string>;
  /** Of this node, at the pod bridge. */
  readonly pods: readonly LocalPod[];
  readonly peers: OverlayPeers;
  readonly overlayDevices: readonly string[];
  /** Of the Service of the API server. */
  readonly apiServices: readonly string[];
  /** Device with the subnet of an address; undefined: there is none. */
  readonly deviceOf: (address: string) => string | undefined;
}

export interface LocalPod {
  readonly uid: string;
  /** Without prefix length, as the CNI plugin gave them. */
  readonly addresses: readonly string[];
  /** Whether any rule selects it; unknown: it reaches the cluster alone. */
  readonly selection: 'none' | 'selected' | 'unknown';
}
