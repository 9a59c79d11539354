import type { TunnelProtocol } from '@unbounded/crds';
import type { Family } from '@unbounded/ip';
import type { Holding } from './world/holdings.ts';
import type { DataplaneKind } from './links/local-node.ts';
import type { NodeRelay, RelayedPeer } from './world/relay-model.ts';
import type { Problem } from './world/problem.ts';

/** What a plan consists of. */

/** Names of the devices that the plan speaks of. */
export const DEVICES = {
  anchor: 'unbounded0',
  bridge: 'cbr0',
  VXLAN: 'vxlan0',
  GENEVE: 'geneve0',
  IPIP: 'ipip0',
} as const;
export type TunnelKind = 'VXLAN' | 'GENEVE' | 'IPIP';

/** The virtual network identifier of all our tunnels. */
export const TUNNEL_VNI = 1;

/** Routing tables: the main one under the eBPF data path; under the netlink one a table of our own, looked up before it. */
export const ROUTE_TABLES: Readonly<Record<DataplaneKind, number>> = { ebpf: 254, netlink: 252 };

/** Where a packet goes next: into a WireGuard interface, or into a tunnel device towards `remoteIp`. */
export interface NextHop {
  readonly device: string;
  readonly protocol: Exclude<TunnelProtocol, 'None'>;
  readonly remoteIp?: string;
  /** Netlink data path, devices with Ethernet headers only: the peer's overlay address, on link there. */
  readonly gatewayIp?: string;
  /** Devices with Ethernet headers only: the peer's own address, from which it derives their MAC. Absent: `remoteIp`. */
  readonly peerIp?: string;
  readonly node: string;
}

/** An entry of the endpoint maps. */
export interface EndpointPlan {
  readonly prefix: string;
  readonly via: { readonly nextHop: NextHop } | { readonly group: string };
}

export interface GroupMember extends NextHop {
  /** 0: the nearest way; a higher tier is used only while no member of a lower one is usable. */
  readonly tier: number;
}

/** Ways to what lies behind gateways: one group for a site, or for the routed blocks of some pools, and a family. */
export interface GroupPlan {
  /** Stays the same while members come and go. */
  readonly name: string;
  readonly family: Family;
  /** The site behind it; absent: routed blocks of pools. */
  readonly site?: string;
  /** By tier; may be empty while no gateway has a port yet. */
  readonly members: readonly GroupMember[];
}

/**
 * Where a kernel route leads. anchor: into the anchor device, where the eBPF program decides. gateways: plainly to
 * neighbours (protocol None). Of the netlink data path only: a device, with the far end for those that have none of their
 * own (`remoteIp`) and the on-link next hop for those with Ethernet headers; a group; nowhere, so that what has no way
 * does not leave by the default route (unreachable); on in the main table (throw).
 */
export type RouteVia =
  | 'anchor'
  | 'unreachable'
  | 'main'
  | { readonly gateways: readonly string[] }
  | { readonly group: string }
  | { readonly device: string; readonly remoteIp?: string; readonly gatewayIp?: string; readonly peerIp?: string };

export interface RoutePlan {
  readonly prefix: string;
  readonly via: RouteVia;
  readonly prefSrc?: string;
  readonly mtuBytes: number;
}

/** A tunnel device; without `remoteIp` one for all peers, whose far end each packet brings along. */
export interface TunnelPlan {
  readonly kind: TunnelKind;
  readonly device: string;
  readonly mtuBytes: number;
  readonly remoteIp?: string;
}

/** A peer to probe through the overlay, in one family; both ends have the same interval and multiplier. */
export interface ProbePlan {
  readonly node: string;
  readonly publicKey: string;
  /** The key that follows, while the peer exchanges its key. */
  readonly nextPublicKey?: string;
  readonly family: Family;
  /** The node's own overlay address: the first of its first block of the family. */
  readonly localAddress: string;
  /** The peer's. */
  readonly address: string;
  readonly intervalMs: number;
  readonly detectMultiplier: number;
}

/** A peer that sends by an unencrypted tunnel. */
export interface TunnelSender {
  readonly node: string;
  /** Source of its tunnel packets. */
  readonly remoteIp: string;
  /** Blocks of the inner sources that it may bring. */
  readonly sources: readonly string[];
}

export interface WireGuardPeerPlan {
  readonly node: string;
  readonly publicKey: string;
  /** Where the peer is directly, whether a relay may stand in or not. Absent: the peer finds us. */
  readonly endpoint?: string;
  /** Set where packets may go by a relay. */
  readonly relay?: RelayedPeer;
  readonly allowedIps: readonly string[];
  readonly persistentKeepaliveSeconds?: number;
}

export interface WireGuardInterfacePlan {
  readonly name: string;
  readonly listenPort: number;
  readonly mtuBytes: number;
  /** Of our own key that the interface has; absent: 0. */
  readonly keyGeneration?: number;
  readonly peers: readonly WireGuardPeerPlan[];
}

export interface MasqueradePlan {
  /** Blocks whose packets leave with the node's own address. */
  readonly sources: readonly string[];
  /** Destinations that see the pod's own address. */
  readonly exceptTo: readonly string[];
}

/** Where tunnels of the cluster's nodes end. */
export interface TunnelEnds {
  /** Blocks of all nodes' addresses, and the addresses of gateways. */
  readonly addresses: readonly string[];
  /** UDP ports on which nodes listen for WireGuard. */
  readonly wireGuardPorts: readonly number[];
}

/** Everything that one node's kernel should hold for the network. */
export interface NodePlan {
  readonly node: string;
  readonly site: string;
  readonly role: 'worker' | 'gateway';
  readonly dataplane: DataplaneKind;
  /** The table in which the routes stand. */
  readonly routeTable: number;
  /** The node's blocks, and the host addresses (/32, /128) that its overlay devices carry: the first of each block. */
  readonly podCidrs: readonly string[];
  readonly overlayAddresses: readonly string[];
  /** The node's own address that peers send tunnels to: its first IPv4 one, else its first. */
  readonly underlayIp: string;
  /** MTU of pods and of the anchor, bytes: what the narrowest protocol leaves. */
  readonly mtuBytes: number;
  readonly manageCni: boolean;
  readonly tunnels: readonly TunnelPlan[];
  readonly wireGuard: readonly WireGuardInterfacePlan[];
  /** The relay of the peers that may have one; absent: no peer may. */
  readonly relay?: NodeRelay;
  readonly endpoints: readonly EndpointPlan[];
  readonly groups: readonly GroupPlan[];
  readonly routes: readonly RoutePlan[];
  /**
   * Gateways: addresses of nodes on the same network (/32, /128), which are reached by the LAN, but whose packets may come out
   * of these nodes' tunnels. Absent: none.
   */
  readonly nodeAddresses?: readonly string[];
  /** To those of them to which packets that came out of the overlay go on by the node's tunnel, in a table of their own. */
  readonly transitRoutes?: readonly RoutePlan[];
  readonly masquerade: MasqueradePlan;
  /**
   * Of blocks of pods that are not routed, since they hold addresses of the underlay, all but those: what is for them leaves by
   * no device that is not ours. Absent: none.
   */
  readonly withheld?: readonly string[];
  readonly probes: readonly ProbePlan[];
  /** Of a gateway: the sites that it serves itself, which it reports as reached to whoever asks. */
  readonly servedSites: readonly string[];
  /**
   * Underlay addresses of unencrypted tunnels that may carry inner sources which are not their own, whatever the
   * endpoint entries say; only gateways have any. They are the other gateways of the node's pool: while a gateway's own
   * way to a site is cut it hands packets to one of these, and their sources (pods of the served sites, or of others in
   * transit) have entries that name the worker itself or gateways of other pools. And they are gateways of peered pools
   * that serve a site which this pool serves too, or reach it by another way than we do: a worker that cannot use the
   * nearest of its pools enters by these. A worker needs none: all gateways of its pools are members of the groups to
   * which the sources' entries point. WireGuard needs none: the peers' allowed addresses say the same.
   */
  readonly forwarders: readonly string[];
  /**
   * Netlink data path: whose packets may come out of unencrypted tunnels, by their outer and inner sources. Absent under
   * the eBPF one, whose entries and forwarders say it, and in plans that were kept by an agent that knew it not.
   */
  readonly senders?: readonly TunnelSender[];
  /** Blocks whose packets may come without a tunnel although they leave through one: only while a link changes its protocol. */
  readonly alsoPlain?: readonly string[];
  /** What gateways and the peers of the node hold; absent in plans that were kept by an agent that did not record it. */
  readonly holdings?: readonly Holding[];
  /** What pods may not send tunnel packets to. Absent in plans that were kept by an agent that did not know it. */
  readonly tunnelEnds?: TunnelEnds;
  /**
   * The node's own addresses, the first of each family: from these it must send unencrypted tunnel packets, since by them
   * peers know it. Absent as above.
   */
  readonly ownAddresses?: readonly string[];
  /** Far ends of unencrypted tunnels to whom that does not apply: over external addresses a NAT may stand before the node. */
  readonly externalTunnelPeers?: readonly string[];
  readonly problems: readonly Problem[];
}
