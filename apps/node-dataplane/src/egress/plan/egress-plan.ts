/**
 * What egress is to hold at one node, whole: from it alone the kernel's state follows. It is kept in a file, so that the node goes on
 * with it while the objects are away.
 */
export interface EgressPlan {
  readonly node: string;
  /** The node's own addresses in the overlay, at most one of each family. */
  readonly overlayAddresses: readonly string[];
  /** Of packets in the tunnel between nodes. */
  readonly mtuBytes: number;
  /** Blocks of the node's own pods. */
  readonly podCidrs: readonly string[];
  /** Of the overlay at this node, the bridge of the pods too: by these come packets of the tunnel, and nothing leaves by them with an egress address. */
  readonly overlayDevices: readonly string[];
  /** Destinations in the cluster, of pods and nodes: never steered. Prefixes and addresses. */
  readonly cluster: readonly string[];
  /** By which pods reach the API server: it may be outside of the cluster, and what goes there by these is not steered. */
  readonly apiServices: readonly string[];
  /** Nodes at the other end of the tunnel: owners of addresses, and nodes of pods that leave here. */
  readonly peers: readonly EgressPeer[];
  /** Pods of this node, those of one class with the same routes. */
  readonly steered: readonly PodClass[];
  /** Pods of other nodes that leave with an address of this one. */
  readonly translated: readonly PodClass[];
  /** Addresses that this node owns. */
  readonly addresses: readonly PlannedAddress[];
}

interface EgressPeer {
  readonly node: string;
  /** In the overlay, at most one of each family. */
  readonly overlayAddresses: readonly string[];
}

export interface PodClass {
  /** The first whose destinations hold that of a packet, and whose exceptions do not, counts. */
  readonly routes: readonly PodRoute[];
  readonly pods: readonly PlannedPod[];
}

interface PlannedPod {
  readonly uid: string;
  readonly node: string;
  /** At most one of each family. */
  readonly addresses: readonly string[];
}

export interface PodRoute {
  /** KIND/NAMESPACE/NAME/INDEX, for people. */
  readonly rule: string;
  /** Prefixes, of both families together. */
  readonly destinations: readonly string[];
  readonly except: readonly string[];
  /** At most one of each family. A family of the destinations without one: `unavailable` counts. */
  readonly egress: readonly RouteEgress[];
  readonly unavailable: Unavailable;
}

/** An address, and the node that has it. */
export interface RouteEgress {
  readonly address: string;
  readonly owner: string;
}

/** What becomes of packets while nobody owns the address: they are dropped, or leave with the address of the pod's node. */
type Unavailable = 'drop' | 'pass';

interface PlannedAddress {
  readonly address: string;
  /** Device that has it and is announced on; undefined: routes lead to the node, and no device has it. */
  readonly device: string | undefined;
  /** By which packets with the address leave; absent: as the routes of the node say. */
  readonly nextHop?: NextHop | undefined;
}

export interface NextHop {
  readonly router: string;
  readonly device: string;
}
