/** IP addresses on links, routes, nexthop objects, policy rules and neighbours as values. Texts are canonical (RFC 5952). */

export type IpFamily = 4 | 6;

/** An address on a link (`IFA_*`, linux/if_addr.h). */
export interface LinkAddress {
  readonly link: number;
  /** `192.0.2.1/24`: the address with the length of its subnet (host bits allowed). */
  readonly address: string;
  /** The other end of a point-to-point link. */
  readonly peer?: string;
  readonly scope?: RouteScope;
  readonly label?: string;
  /** It works, but nothing that may choose its source chooses it (RFC 4862 5.5.4); of IPv6: in IPv4 it changes nothing. */
  readonly deprecated?: boolean;
  /** Who made it (IFA_PROTO, Linux 5.18; earlier kernels do not keep it); numbers as those of routes. */
  readonly protocol?: number;
  /** IFA_F_* bits (linux/if_addr.h). New IPv6 addresses on tunnels should carry IFA_F_NODAD (0x02). */
  readonly flags?: number;
}

/** linux/rtnetlink.h `rt_scope_t`; numbers in between are kept as numbers. */
export const ROUTE_SCOPES = { global: 0, site: 200, link: 253, host: 254, nowhere: 255 } as const;
export type RouteScope = keyof typeof ROUTE_SCOPES;

/** linux/rtnetlink.h RTN_*, in the kernel's order. */
export const ROUTE_TYPES = [
  'unspecified',
  'unicast',
  'local',
  'broadcast',
  'anycast',
  'multicast',
  'blackhole',
  'unreachable',
  'prohibit',
  'throw',
  'nat',
] as const;
type RouteType = (typeof ROUTE_TYPES)[number];

export const ROUTE_TABLES = { default: 253, main: 254, local: 255 } as const;

/** Lightweight tunnel: the route itself says how to encapsulate. */
export type Encap = IpEncap | Seg6Encap | OtherEncap;
/** For routes over an `external` tunnel device (RTA_ENCAP_TYPE ip or ip6). */
export interface IpEncap {
  readonly type: 'ip' | 'ip6';
  /** The VNI. */
  readonly id: number;
  readonly dst: string;
  readonly src?: string;
  readonly ttl?: number;
  readonly tos?: number;
}
/** RFC 8754; segments in the order they are visited. */
export interface Seg6Encap {
  readonly type: 'seg6';
  readonly mode: 'inline' | 'encap' | 'l2encap' | 'encap.red' | 'l2encap.red';
  readonly segments: readonly string[];
}
/** Read only: a type this library does not know (LWTUNNEL_ENCAP_*). */
interface OtherEncap {
  readonly type: 'other';
  readonly code: number;
}

/** One way out of a multipath route. */
export interface RouteHop {
  readonly link?: number;
  readonly gateway?: string;
  /** 1..256, default 1. */
  readonly weight?: number;
  readonly onlink?: boolean;
  readonly encap?: Encap;
}

/** A route to add, replace or delete. */
export interface RouteSpec {
  /** `192.0.2.0/24`, `::/0`; says the family too. */
  readonly dst: string;
  /** Any 32-bit number; default main (254). */
  readonly table?: number;
  /** Default static (4). Say your own, so that others know whose it is. */
  readonly protocol?: number;
  /** Default: link for an IPv4 route without gateway, else global. */
  readonly scope?: RouteScope;
  readonly type?: RouteType;
  /** Priority: the lowest of the same destination wins. */
  readonly metric?: number;
  readonly prefSrc?: string;
  readonly link?: number;
  /** May be of the other family (RFC 5549), then it is sent as RTA_VIA. */
  readonly gateway?: string;
  readonly onlink?: boolean;
  readonly mtu?: number;
  readonly advmss?: number;
  readonly nexthops?: readonly RouteHop[];
  /** Id of a nexthop object or group; excludes link, gateway and nexthops. */
  readonly nexthopId?: number;
  readonly encap?: Encap;
}

/** A route as the kernel tells it. */
export interface Route extends RouteSpec {
  readonly family: IpFamily;
  readonly table: number;
  readonly protocol: number;
  readonly scope: RouteScope;
  readonly type: RouteType;
  /** RTNH_F_* of the route: 1 dead, 16 linkdown. */
  readonly flags: number;
}

/** A nexthop object (linux/nexthop.h): a single way out, or a group of others. */
export interface NexthopSpec {
  readonly id: number;
  readonly protocol?: number;
  readonly link?: number;
  readonly gateway?: string;
  /** Needed where neither gateway nor group says it (a device-only nexthop); default 4. */
  readonly family?: IpFamily;
  readonly onlink?: boolean;
  readonly blackhole?: boolean;
  /** For FDB entries of a VXLAN device. */
  readonly fdb?: boolean;
  readonly encap?: Encap;
  readonly group?: readonly NexthopMember[];
  /** Keeps flows where they are while members come and go; only for groups. */
  readonly resilient?: ResilientGroup;
}
export interface NexthopMember {
  readonly id: number;
  /** 1..256, default 1. */
  readonly weight?: number;
}
export interface ResilientGroup {
  readonly buckets: number;
  /** Seconds a bucket must be idle before it may move. */
  readonly idleTimer?: number;
  /** Seconds after which buckets move even when busy; 0 never. */
  readonly unbalancedTimer?: number;
}
export interface Nexthop extends NexthopSpec {
  readonly protocol: number;
  /** RTNH_F_*. */
  readonly flags: number;
}

/** A policy rule (`FRA_*`, linux/fib_rules.h). */
export interface RuleSpec {
  readonly family: IpFamily;
  /** Lower is looked at first. */
  readonly priority: number;
  readonly table?: number;
  readonly action?: 'lookup' | 'blackhole' | 'unreachable' | 'prohibit';
  readonly mark?: { readonly value: number; readonly mask: number };
  readonly src?: string;
  readonly dst?: string;
  readonly iif?: string;
  readonly oif?: string;
  /** Ignore what the table says if the route's prefix is this short or shorter. */
  readonly suppressPrefixLength?: number;
  readonly invert?: boolean;
  readonly protocol?: number;
}
export interface Rule extends RuleSpec {
  readonly table: number;
}

/** linux/neighbour.h NUD_*. */
export const NEIGHBOUR_STATES = {
  none: 0,
  incomplete: 1,
  reachable: 2,
  stale: 4,
  delay: 8,
  probe: 16,
  failed: 32,
  noarp: 64,
  permanent: 128,
} as const;
export type NeighbourState = keyof typeof NEIGHBOUR_STATES;

/** An ARP or NDP entry, or (family `bridge`) an FDB entry of a bridge port or a VXLAN device. */
export interface NeighbourSpec {
  readonly family: IpFamily | 'bridge';
  readonly link: number;
  /** Default permanent. */
  readonly state?: NeighbourState;
  readonly mac?: string;
  /** ARP/NDP: the neighbour. FDB of a VXLAN device: the remote VTEP. */
  readonly address?: string;
  readonly vni?: number;
  readonly port?: number;
  readonly nexthopId?: number;
  readonly vlan?: number;
  /** Who made it (NDA_PROTOCOL, Linux 5.0); numbers as those of routes. */
  readonly protocol?: number;
  /** NTF_* bits; default for FDB entries: NTF_SELF (2), the device's own table. NTF_MASTER is 4, NTF_PROXY 8. */
  readonly flags?: number;
}
export interface Neighbour extends NeighbourSpec {
  readonly state: NeighbourState;
  readonly flags: number;
  /** Index of the bridge, for an FDB entry of a port. */
  readonly master?: number;
}
