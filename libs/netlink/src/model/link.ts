/** What a network device is and how it is set up: `IFLA_*` of linux/if_link.h as values. */

export interface BridgeKind {
  readonly kind: 'bridge';
  /** Spanning tree (the kernel's own, or that of a daemon). */
  readonly stp?: boolean;
  readonly multicastSnooping?: boolean;
  /** Whether frames to the group of the bridge itself (01:80:c2:00:00:00 to 0f) teach it MACs; kernel 5.0 and later. */
  readonly linkLocalLearning?: boolean;
  /** Bit n: frames to 01:80:c2:00:00:0n are forwarded like others; not for 0, 1 and 2. */
  readonly groupForwardMask?: number;
}
/** A pair; only the end that is created carries `peer`. The kernel does not tell it back. */
interface VethKind {
  readonly kind: 'veth';
  readonly peer?: VethPeer;
}
/** It is born down: the kernel cannot raise it before its other end exists. */
export interface VethPeer {
  readonly name: string;
  readonly mtu?: number;
  readonly mac?: string;
  /** The peer is born in this namespace (an open fd of it). */
  readonly netnsFd?: number;
}
/** RFC 7348. `external` (also called flow based): the tunnel key comes with the packet, so no VNI and no remote here. */
export interface VxlanKind {
  readonly kind: 'vxlan';
  readonly external?: boolean;
  readonly vni?: number;
  readonly remote?: string;
  readonly local?: string;
  /** UDP destination port; the kernel's own default is 8472, IANA's is 4789: always say which. */
  readonly port?: number;
  readonly sourcePorts?: { readonly low: number; readonly high: number };
  readonly learning?: boolean;
  readonly ttl?: number;
  readonly udpChecksum?: boolean;
  readonly udp6ZeroChecksumTx?: boolean;
  readonly udp6ZeroChecksumRx?: boolean;
  /** Index of the underlay device. */
  readonly underlay?: number;
}
/** RFC 8926. Either `external`, or `vni` and `remote`. */
export interface GeneveKind {
  readonly kind: 'geneve';
  readonly external?: boolean;
  readonly vni?: number;
  readonly remote?: string;
  readonly port?: number;
  readonly ttl?: number;
  readonly udpChecksum?: boolean;
  readonly udp6ZeroChecksumTx?: boolean;
  readonly udp6ZeroChecksumRx?: boolean;
}
/** RFC 2003: IPv4 in IPv4. */
export interface IpipKind {
  readonly kind: 'ipip';
  readonly external?: boolean;
  readonly local?: string;
  readonly remote?: string;
  readonly ttl?: number;
  readonly pathMtuDiscovery?: boolean;
  readonly underlay?: number;
}
interface DummyKind {
  readonly kind: 'dummy';
}
interface IfbKind {
  readonly kind: 'ifb';
}
interface WireguardKind {
  readonly kind: 'wireguard';
}
export interface VrfKind {
  readonly kind: 'vrf';
  readonly table: number;
}
/** Read only: a TUN or TAP is made through /dev/net/tun, see `createTun`. */
export interface TunKind {
  readonly kind: 'tun';
  readonly mode: 'tun' | 'tap';
  readonly persistent: boolean;
  readonly vnetHeader: boolean;
  readonly packetInfo: boolean;
}
/** Read only: a kind this library does not know. */
interface OtherKind {
  readonly kind: 'other';
  readonly name: string;
}

export type CreatableKind =
  | BridgeKind
  | VethKind
  | VxlanKind
  | GeneveKind
  | IpipKind
  | DummyKind
  | IfbKind
  | WireguardKind
  | VrfKind;
export type LinkKind = CreatableKind | TunKind | OtherKind;

/** The settings that every kind has. Absent means: leave as it is (or the kernel's default for a new link). */
export interface LinkSettings {
  readonly mtu?: number;
  /** Packets that may wait to be sent (`txqueuelen`). */
  readonly txQueuePackets?: number;
  /** `02:00:00:00:00:01` */
  readonly mac?: string;
  readonly up?: boolean;
  /** false sets IFF_NOARP. */
  readonly arp?: boolean;
  /** Index of the bridge or VRF it is enslaved to; 0 sets it free. */
  readonly master?: number;
  /** Free text of at most 255 bytes (`ip link` shows it as alias); empty removes it. */
  readonly alias?: string;
  readonly group?: number;
  /** An open fd of the namespace to move to (or, for a new link, to be born in). */
  readonly netnsFd?: number;
}

/** A link to create. */
export interface LinkSpec extends LinkSettings {
  readonly name: string;
  readonly kind: CreatableKind;
}

/** Changes of an existing link. */
export interface LinkChanges extends LinkSettings {
  readonly name?: string;
  /** Replaces settings of the kind where the kernel allows it (`kind` must match). */
  readonly kind?: CreatableKind;
}

/** Index or name. */
export type LinkRef = number | string;

/** RFC 2863 operational states as the kernel numbers them (linux/if.h). */
export const OPER_STATES = ['unknown', 'notpresent', 'down', 'lowerlayerdown', 'testing', 'dormant', 'up'] as const;
type OperState = (typeof OPER_STATES)[number];

/** Counters since the link was made; packets and bytes (IFLA_STATS64). */
export interface LinkStats {
  readonly rxPackets: number;
  readonly txPackets: number;
  readonly rxBytes: number;
  readonly txBytes: number;
  readonly rxErrors: number;
  readonly txErrors: number;
  readonly rxDropped: number;
  readonly txDropped: number;
}

/** A link as the kernel tells it. */
export interface Link {
  readonly index: number;
  readonly name: string;
  /** undefined for a device without rtnl_link_ops (loopback, a physical NIC). */
  readonly kind?: LinkKind;
  /** ARPHRD_*: 1 Ethernet, 772 loopback, 65534 none (TUN, WireGuard). */
  readonly hardwareType: number;
  /** IFF_* as they are (linux/if.h). */
  readonly flags: number;
  readonly up: boolean;
  readonly arp: boolean;
  /** Lower layer up: a cable, a running peer, a process behind the TUN. */
  readonly carrier: boolean;
  readonly operState: OperState;
  readonly mtu: number;
  readonly txQueuePackets: number;
  readonly mac?: string;
  readonly master?: number;
  readonly alias?: string;
  readonly group: number;
  /** Index of the device it stands on or, for a veth, of its peer. */
  readonly parent?: number;
  /** Where that device is, if in another namespace: this namespace's number for it; see `Links.get`. */
  readonly parentNetnsId?: number;
  readonly stats?: LinkStats;
}
