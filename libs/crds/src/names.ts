/** The names that operators and other programs meet: they are part of the API and do not change. */

export const API_GROUP = 'net.unbounded-cloud.io';
export const API_VERSION = 'v1alpha1';
export const GROUP_VERSION = `${API_GROUP}/${API_VERSION}` as const;

export const labels = {
  /** On Node and GatewayPoolNode: the Site the node belongs to. */
  site: `${API_GROUP}/site`,
  /** On GatewayPoolNode. */
  gatewayPool: `${API_GROUP}/gateway-pool`,
  /** On GatewayPoolNode. */
  node: `${API_GROUP}/node`,
  /** On FDBEntry and Neighbor: their Network, so that a node watches the entries of its networks alone. */
  network: `${API_GROUP}/network`,
} as const;

/** On Node. */
export const annotations = {
  /** The node's WireGuard public key, base64. Written by the node agent. */
  wireGuardPublicKey: `${API_GROUP}/wg-pubkey`,
  /** How many times that key was rotated; absent: 0. Written by the node agent. */
  wireGuardKeyGeneration: `${API_GROUP}/wg-key-generation`,
  /** During key rotation: the public key that follows it, base64. Written by the node agent. */
  wireGuardNextPublicKey: `${API_GROUP}/wg-next-pubkey`,
  /** Asks the node agent for a new key. Any text of at most 256 characters; each is honoured once. Written by people. */
  rotateWireGuardKey: `${API_GROUP}/rotate-wireguard-key`,
  /** The UDP port on which this gateway's dedicated interfaces meet. Written by gateway-health. */
  wireGuardPort: `${API_GROUP}/wireguard-port`,
  /** The MTU that the node's underlay leaves for a tunnel, bytes. Written by the node agent. */
  tunnelMtu: `${API_GROUP}/tunnel-mtu`,
  /** The tunnel protocols the node can do, comma-separated. Written by the node agent. */
  tunnelProtocols: `${API_GROUP}/tunnel-protocols`,
  /** What the node's agent supports on which its peers rely, comma-separated. Written by the node agent. */
  features: `${API_GROUP}/features`,
  /**
   * External addresses of a gateway: IP addresses or DNS names, comma-separated. Takes precedence over addresses of type
   * ExternalIP in the Node's status. Written by people; neither the node agent nor the kubelet may write it.
   */
  externalAddress: `${API_GROUP}/external-address`,
  /**
   * The node's locator for stretched L2, an IPv6 block of /64. Written by cidr-allocator; neither the node agent nor the kubelet
   * may write it.
   */
  l2Locator: `${API_GROUP}/l2-locator`,
} as const;

/** On Node. */
export const egressAnnotations = {
  /**
   * States that the node is off or cut off from every network, so that it holds no egress address. Its value is free text, the reason.
   * It counts while the node's agent does not answer. Written by people; neither the node agent nor the kubelet may write it.
   */
  fenced: `${API_GROUP}/egress-fenced`,
} as const;

/** On Pod. */
export const podAnnotations = {
  /**
   * The Networks that the pod joins when it starts: names, comma-separated, each with @ and the name of the interface where that is not
   * net1, net2, … in their order; or a JSON list of objects with network, interface, mac, addresses and segment. Written by people.
   */
  networks: `${API_GROUP}/networks`,
} as const;

/** On Pod, where it is to be a device of the tailnet. Written by people; read when the pod starts. */
export const tailnetAnnotations = {
  /** "true": it joins, where a rule of the Mesh lets it. "false": it does not, whatever a rule says. */
  join: `${API_GROUP}/tailnet`,
  /** Tags of the device instead of those of the Mesh: tag:NAME, comma-separated. */
  tags: `${API_GROUP}/tailnet-tags`,
  /** Name of the device; absent: CLUSTER-NAMESPACE-POD. */
  hostName: `${API_GROUP}/tailnet-hostname`,
  /** "WaitForDevice": its containers start when the device has its addresses. "Immediate", or absent: at once. */
  start: `${API_GROUP}/tailnet-start`,
} as const;

/** Types of conditions of a Node on which another component acts. Written by the node agent. */
export const nodeConditions = {
  /** Whether the node forwards what belongs to the overlay, as echoes show. */
  forwarding: 'UnboundedForwarding',
} as const;

/** Why a node does not forward: the reasons of that condition. A kubelet can write any other one on its own Node. */
export const forwardingReasons = ['HostFirewallBlocks', 'NotForwarding'] as const;
export type ForwardingReason = (typeof forwardingReasons)[number];

/** Types of conditions of a Pod; as readiness gates they keep a pod from being Ready. Written by tailnet-registrar. */
export const podConditions = {
  /** Whether its device is in the tailnet, with addresses. */
  tailnet: `${API_GROUP}/tailnet`,
} as const;

/** On Site and GatewayPool while nodes depend on them: a delete waits until the last one is gone. */
export const PROTECTION_FINALIZER = `${API_GROUP}/protection`;

/** Keeps workloads off gateways: a gateway has no pod routes to other sites. */
export const GATEWAY_TAINT = { key: `${API_GROUP}/gateway-node`, value: 'true', effect: 'NoSchedule' } as const;

/** UDP. The mesh interface of a node is named `wg51820`. */
export const MESH_WIREGUARD_PORT = 51820;
/** UDP. Gateways get the lowest free port from here on. */
export const FIRST_GATEWAY_WIREGUARD_PORT = 51821;
/**
 * Distance of the ports of a link whose ends have keys of other generations: there are four combinations of even and odd
 * ones, and so for each port above three more, up to 65419.
 */
export const KEY_GENERATION_PORTS = 3400;
export const LAST_GATEWAY_WIREGUARD_PORT = MESH_WIREGUARD_PORT + KEY_GENERATION_PORTS - 1;

/** Entries of one SiteNodeSlice: keeps the object well under etcd's 1.5 MiB. */
export const MAX_SLICE_NODES = 500;

/** Pods of one EgressNodeSlice, those that send and those whose packets are translated together. */
export const MAX_EGRESS_SLICE_PODS = 500;
/** Egress addresses of one EgressNodeSlice. */
export const MAX_EGRESS_SLICE_ADDRESSES = 500;
/** Addresses in the status of one object: of 32 rules, 16 of each family. */
export const MAX_EGRESS_ASSIGNED_ADDRESSES = 1024;
/** Rules that one pod can be subject to. */
export const MAX_EGRESS_POD_ROUTES = 64;
/** Entries of the table of routes of one EgressNodeSlice. */
export const MAX_EGRESS_SLICE_ROUTES = 2048;

/** Addresses of one NetworkEndpoint. */
export const MAX_L2_ENDPOINT_ADDRESSES = 16;
export const MAX_L2_SEGMENTS = 64;
/** 24 bits, as a VXLAN network identifier has (RFC 7348 5). */
export const MAX_L2_NETWORK_NUMBER = 0xff_ffff;
/** Nodes with endpoints of one Network: a frame that is replicated goes to each of them. */
export const MAX_L2_NETWORK_NODES = 64;

/** Tags of one device of a tailnet. */
export const MAX_TAILNET_TAGS = 16;
/** Rules about who becomes a device. */
export const MAX_TAILNET_RULES = 64;

/** Bits of a node's locator: what is behind them is a SID's behavior and Network (RFC 8986 3.1). */
export const L2_LOCATOR_BITS = 64;
/** Bits of the block that the nodes of a Site get their locators from: 4,096 blocks of 64 bits. */
export const L2_LOCATOR_BLOCK_BITS = 52;
/** Bits of the prefix that the Sites get their blocks from: 16 Sites at the longest, a million at the shortest. */
export const L2_LOCATOR_PREFIX_BITS = { shortest: 32, longest: 48 } as const;

/** On NetworkEndpoint, by the agent of its node: it goes when nothing of the endpoint is left there. */
export const L2_ENDPOINT_FINALIZER = `${API_GROUP}/endpoint`;

/** On TailnetDevice: its device is in the tailnet, or may get there. Taken off by tailnet-registrar. */
export const TAILNET_DEVICE_FINALIZER = `${API_GROUP}/tailnet-device`;

/** Namespace of the control plane, unless the installation says otherwise. */
export const DEFAULT_NAMESPACE = 'unbounded-system';
