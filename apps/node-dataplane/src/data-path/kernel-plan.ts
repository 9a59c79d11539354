import type { Family } from '@unbounded/ip';
import type { NodePlan } from '@unbounded/topology';

/** A node's plan as one data path renders it: devices, map entries, groups and routes that the kernel is to hold. */

/** What carries packets on a node: our eBPF programs, or the kernel's own routes, devices and next-hop groups. */
export type DataPathKind = 'ebpf' | 'netlink';

export type TunnelKind = 'VXLAN' | 'GENEVE' | 'IPIP';

/** A tunnel device; without `remoteIp` one for all peers, whose far end each packet brings along. */
export interface TunnelDevice {
  readonly kind: TunnelKind;
  readonly device: string;
  readonly mtuBytes: number;
  readonly remoteIp?: string;
}

/** Where a packet goes next: into a WireGuard interface, or into a tunnel device towards `remoteIp`. */
export interface KernelHop {
  readonly device: string;
  readonly protocol: TunnelKind | 'WireGuard';
  readonly remoteIp?: string;
  /** Netlink data path, devices with Ethernet headers only: the peer's overlay address, on link there. */
  readonly gatewayIp?: string;
  /** Devices with Ethernet headers only: the peer's own address, from which it derives their MAC. Absent: `remoteIp`. */
  readonly peerIp?: string;
  readonly node: string;
  /** eBPF data path: what the node's echo address sends there goes back to it. */
  readonly isEcho?: true;
}

export interface KernelGroup {
  readonly name: string;
  readonly family: Family;
  readonly site?: string;
  readonly members: readonly (KernelHop & { readonly tier: number })[];
}

/** An entry of the endpoint maps. */
export interface EndpointPlan {
  readonly prefix: string;
  readonly via: { readonly nextHop: KernelHop } | { readonly group: string };
}

/**
 * Where a kernel route leads. anchor: into the anchor device, where the eBPF program decides. gateways: natively to neighbors
 * (protocol None). Of the netlink data path only: a device, with the far end for those that have none of their own (`remoteIp`) and
 * the on-link next hop for those with Ethernet headers; a group; unreachable, so that what has no way does not leave by the default
 * route; main: on in the main table (throw).
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

/** What a data path makes of a plan. */
export interface Rendering {
  readonly dataplane: DataPathKind;
  /** The table in which the routes stand. */
  readonly routeTable: number;
  readonly tunnels: readonly TunnelDevice[];
  readonly endpoints: readonly EndpointPlan[];
  readonly groups: readonly KernelGroup[];
  readonly routes: readonly RoutePlan[];
  /** To nodes on a gateway's own network, for packets that came out of the overlay, in a table of their own. Absent: none. */
  readonly transitRoutes?: readonly RoutePlan[];
  /** Their addresses (/32, /128), and of those that are reached by the LAN, whose packets may come out of these nodes' tunnels. */
  readonly nodeAddresses?: readonly string[];
  /** Underlay addresses of the tunnels that may carry sources which the entries do not lead back to. */
  readonly forwarders: readonly string[];
  /** Netlink data path: whose packets may come out of unencrypted tunnels, by their outer and inner sources. */
  readonly senders?: readonly {
    readonly node: string;
    readonly remoteIp: string;
    readonly sources: readonly string[];
  }[];
  /** Far ends of unencrypted tunnels before which a NAT may stand: packets to them have whatever source the kernel chooses. */
  readonly externalTunnelPeers: readonly string[];
}

/** What a plan says whatever data path renders it. */
export type NeutralPlan = Omit<NodePlan, 'tunnels' | 'groups' | 'blocks' | 'contained' | 'direct'>;

export type KernelPlan = NeutralPlan & Rendering;
