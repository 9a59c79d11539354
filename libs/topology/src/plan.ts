import type { Family } from '@unbounded/ip';
import type { NodeRelay, RelayedPeer } from './world/relay-model.ts';
import type { Holding } from './world/holdings.ts';
import type { Problem } from './world/problem.ts';

/**
 * What a plan consists of: who the peers are, how each is reached, where blocks of addresses go and whose packets may come from
 * where. It names no device, table or map entry but WireGuard's interfaces, which follow from ports that both ends must know: a data
 * path renders the rest.
 */

export type UnencryptedTunnel = 'VXLAN' | 'GENEVE' | 'IPIP';

/** Into a WireGuard interface, where the destination's address finds the peer. */
interface WireGuardHop {
  readonly protocol: 'WireGuard';
  readonly node: string;
  readonly device: string;
}

/** By an unencrypted tunnel. */
interface TunnelHop {
  readonly protocol: UnencryptedTunnel;
  readonly node: string;
  /** The peer's underlay address. */
  readonly remoteIp: string;
  /** Tunnels with Ethernet headers: the peer's own address, from which it derives its MAC; not always the one that it is called at. */
  readonly peerIp?: string;
  /** Tunnels with Ethernet headers: the peer's overlay address of the packets' family. */
  readonly overlayIp?: string;
}

/** Where a packet goes next. */
export type NextHop = WireGuardHop | TunnelHop;

export type GroupMember = NextHop & {
  /** 0: the nearest way; a higher tier is used only while no member of a lower one is usable. */
  readonly tier: number;
};

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

/** gateways: natively to neighbours (protocol None). pending: nowhere yet; better dropped than sent in the clear. */
export type Destination =
  | { readonly nextHop: NextHop }
  | { readonly group: string }
  | { readonly gateways: readonly string[] }
  | 'pending';

/** Where packets to a block go, and by that whose packets come from there. */
export interface BlockPlan {
  readonly prefix: string;
  readonly to: Destination;
  /** What the narrowest of the links there carries, bytes. */
  readonly mtuBytes: number;
  /**
   * unrouted: packets from the block may come from there, but those to it are carried by another CNI plugin. transit: what came out of
   * the overlay goes there, the node's own packets go by the LAN. accepted: packets may come from there, and go by the LAN. Absent: routed.
   */
  readonly use?: 'unrouted' | 'transit' | 'accepted';
  /** node: packets of the node itself to the block have its InternalIP as their source. Absent: its overlay address. */
  readonly source?: 'node';
  /** Where packets from the block may come from as well: while its link changes its protocol. */
  readonly alsoFrom?: Destination;
}

/** A peer at the other end of an unencrypted tunnel, and whose packets may come out of it. */
export interface TunnelPeer {
  readonly node: string;
  readonly protocol: UnencryptedTunnel;
  readonly remoteIp: string;
  /** MTU inside the tunnel, bytes. */
  readonly mtuBytes: number;
  /** Blocks of the inner sources that the peer may bring. */
  readonly sources: readonly string[];
  /**
   * It may bring more than what is sent back to it. These are the other gateways of the node's pool: while a gateway's own way to a
   * site is cut it hands packets to one of these, and their sources (pods of the served sites, or of others in transit) are reached
   * at the worker itself or by gateways of other pools. And they are gateways of peered pools that serve a site which this pool serves
   * too, or reach it by another way than we do: a worker that cannot use the nearest of its pools enters by these. A worker has none:
   * all gateways of its pools are members of the groups to which the sources belong.
   */
  readonly isTransit: boolean;
  /** Between external addresses a NAT may stand before the node: its packets may come from another address than its own. */
  readonly isExternal: boolean;
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

/**
 * An echo through a gateway, in one family (RFC 5880 6.4): a packet of the node to itself, which the gateway's forwarding returns and
 * its agent never sees. The node's routes know the address of the gateway's that it is sent to; on its way out that becomes the node's own.
 */
export interface EchoPlan {
  readonly node: string;
  readonly family: Family;
  /** The node's own: in its block, and no pod's. */
  readonly localAddress: string;
  /** In the gateway's block. */
  readonly address: string;
  readonly via: NextHop;
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

/**
 * The boundary of the overlay at the node: what may leave it here, and what may enter it. What belongs to the overlay by itself, the
 * node's own pods and addresses, and translated connections need no entry here.
 */
export interface BoundaryPlan {
  /** Pods of this node: their packets leave the network with the node's address, wherever they go. */
  readonly ownPods: readonly string[];
  /** Destinations outside of the overlay for which packets may come out of it here. */
  readonly exits: readonly string[];
  /** Sources outside of the overlay whose packets may go into it here, if they come by the device that leads back to them. */
  readonly entries: readonly string[];
}

/** Locators of stretched L2 (IPv6). */
export interface LocatorPlan {
  /** The node's own, which the section for stretched L2 routes. Absent: it has none, and takes no frames. */
  readonly own?: string;
  /** Of the blocks of all sites, all but what the node needs of the underlay: packets to and from these are frames between nodes alone. */
  readonly blocks: readonly string[];
}

/** Where tunnels of the cluster's nodes end. */
export interface TunnelEnds {
  /** Blocks of all nodes' addresses, and the addresses of gateways. */
  readonly addresses: readonly string[];
  /** UDP ports on which nodes listen for WireGuard. */
  readonly wireGuardPorts: readonly number[];
  /** Destinations, neither pods nor nodes, to which pods may send tunnel packets. Absent: none. */
  readonly allowed?: readonly string[];
}

/** Everything that one node's network is to be. */
export interface NodePlan {
  readonly node: string;
  readonly site: string;
  readonly role: 'worker' | 'gateway';
  /** The node's blocks, and the host addresses (/32, /128) that its overlay devices carry: the first of each block. */
  readonly podCidrs: readonly string[];
  readonly overlayAddresses: readonly string[];
  /** The node's own address that peers send tunnels to: its first IPv4 one, else its first. */
  readonly underlayIp: string;
  /** The node's own addresses, the first of each family: from these it must send unencrypted tunnel packets. */
  readonly ownAddresses: readonly string[];
  /** MTU of pods, bytes: what the narrowest protocol leaves. */
  readonly mtuBytes: number;
  readonly manageCni: boolean;
  readonly wireGuard: readonly WireGuardInterfacePlan[];
  /** The relay of the peers that may have one; absent: no peer may. */
  readonly relay?: NodeRelay;
  readonly tunnels: readonly TunnelPeer[];
  readonly groups: readonly GroupPlan[];
  /** In the order of their prefixes. */
  readonly blocks: readonly BlockPlan[];
  /** Blocks that never leave by the default route, also where they have no way. */
  readonly contained: readonly string[];
  /** Blocks that the node reaches without the overlay, also inside a wider block that it does not. */
  readonly direct: readonly string[];
  readonly masquerade: MasqueradePlan;
  readonly boundary: BoundaryPlan;
  /**
   * Of blocks of pods that are not routed, since they hold addresses of the underlay, all but those: what is for them leaves by
   * no device that is not ours. Absent: none.
   */
  readonly withheld?: readonly string[];
  /** Absent: no Site has a block of locators. */
  readonly locators?: LocatorPlan;
  readonly probes: readonly ProbePlan[];
  /** Through the gateways among the probed peers. Absent: none, or a kept plan of before. */
  readonly echoes?: readonly EchoPlan[];
  /** Of a gateway: the sites that it serves itself, which it reports as reached to whoever asks. */
  readonly servedSites: readonly string[];
  /** Blocks whose packets may come without a tunnel although they leave through one: only while a link changes its protocol. */
  readonly alsoPlain?: readonly string[];
  /** The neighbors who send them, by the blocks in which they are: they come by the devices that lead to these. */
  readonly alsoPlainBy?: readonly { readonly prefix: string; readonly gateways: readonly string[] }[];
  /** What gateways and the peers of the node hold. */
  readonly holdings: readonly Holding[];
  /** It routes the nodeCidrs of all sites of other networks. Absent: not all. */
  readonly routesNodes?: true;
  /** What pods may not send tunnel packets to. */
  readonly tunnelEnds: TunnelEnds;
  readonly problems: readonly Problem[];
}
