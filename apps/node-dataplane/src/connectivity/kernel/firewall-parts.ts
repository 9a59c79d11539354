import { DEVICES } from '../../data-path/devices.ts';
import type { ChainSpec, Expression, SetSpec } from '@unbounded/nftables';
import { ADDRESS_TYPE, FAMILIES, type Family, familyOf } from './nft-family.ts';

/** What the parts of our nftables table have in common. */

export interface FirewallPart {
  readonly sets: readonly SetSpec[];
  readonly chains: readonly ChainSpec[];
}

/** Names of counters: why a packet was dropped. They are the values of the metric's label `reason`. */
export const COUNTERS = {
  /** A pod's address that came in by no tunnel, or a node's that is reached by one. */
  forgedSource: 'forged_source',
  /** A pod's address that came in natively, but not by the device that leads back to it. */
  noRouteBack: 'no_route_back',
  /** A pod's tunnel packet to a node. */
  injectedTunnelPacket: 'injected_tunnel_packet',
  /** A packet to the overlay that was about to leave outside of it. */
  overlayLeak: 'overlay_leak',
  /** A packet out of the overlay to where this node is no exit. */
  unlistedExit: 'unlisted_exit',
  /** A packet into the overlay from a source outside of it that is not listed. */
  unlistedEntry: 'unlisted_entry',
  /** A tunnel packet to another address than peers use, or by a device that does not lead to its sender. */
  strayTunnelPacket: 'stray_tunnel_packet',
  /** For metrics, at an internal address, by a device that has not that address. */
  strayScrape: 'stray_scrape',
  /** ARP or neighbor discovery about an address of the overlay, by a device that is not of it. */
  overlayNeighbor: 'overlay_neighbor',
  /** A packet to the address of the node's echoes that is none of them. */
  strayEcho: 'stray_echo',
  /** An ICMP error about a tunnel of ours. */
  tunnelIcmpError: 'tunnel_icmp_error',
  /** A tunnel packet whose inner source is not its sender's (netlink data path). */
  forgedInnerSource: 'forged_inner_source',
} as const;

/** Devices of the overlay behind which its packets are not in a tunnel. */
export const ENDS: ReadonlySet<string> = new Set([DEVICES.bridge, DEVICES.echo]);

export const ofFamily = (family: Family, prefixes: readonly string[]): string[] =>
  prefixes.filter((prefix) => familyOf(prefix) === family);

/** A set of nftables has one family, so what is named once stands in two sets. */
export const setName = (name: string, family: Family): string => `${name}_${family}`;

export const addressSet = (name: string, family: Family, prefixes: readonly string[]): SetSpec => ({
  name: setName(name, family),
  type: ADDRESS_TYPE[family],
  elements: ofFamily(family, prefixes),
});

/** Addresses and prefixes of both families. */
export const addressSets = (name: string, prefixes: readonly string[]): SetSpec[] =>
  FAMILIES.map((family) => addressSet(name, family, prefixes));

/** Whether an address of the packet is in the set of its family. */
export const isIn = (family: Family, address: 'saddr' | 'daddr', name: string, op: '==' | '!=' = '=='): Expression => ({
  match: 'set',
  field: `${family}.${address}`,
  op,
  set: setName(name, family),
});
