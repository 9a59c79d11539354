import { NFT_GUARD_TABLE } from '@unbounded/config/ownership';
import { baseOf, GUARD_CHAINS } from '../../kernel/base-chains.ts';
import { formatAddress, linkLocalOf } from '@unbounded/ip';
import type { ChainSpec, Expression, SetSpec, TableSpec } from '@unbounded/nftables';
import { accept, drop, DROP_REASONS, type DropReason, field, own, rule } from './guard-expressions.ts';
import { neighborDiscoveryChains } from './neighbor-discovery.plan.ts';
import type { PodPort } from './pod-port.ts';

/**
 * Source validation for pods: a frame that enters the bridge by a pod's port has the pod's MAC and one of its addresses, or is dropped.
 * Of other ports, also of other bridges, nothing is looked at. The rules are the same for any number of pods; a pod is a few
 * elements of sets. Frames are dropped before the bridge learns from them and before any IP hook sees them.
 */

/** Set whose elements count the dropped frames of each port. */
export const dropSet = (reason: DropReason): string => `dropped_${reason}`;
/** Chain whose rule counts and drops them. */
export const dropChainOf = (reason: DropReason): string => `drop_${reason}`;

const DROPS_KEPT = { timeoutMs: 3_600_000, maxElements: 4096 };
const ETHERTYPE = { ipv4: 0x0800, arp: 0x0806, ipv6: 0x86dd } as const;
const ARP_ETHERNET_IPV4 = 0x0001_0800_0604; // hardware type 1, protocol 0x0800, lengths 6 and 4
const ARP_REQUEST = 1;
/** The first five bytes of the addresses that are for bridges (IEEE 802.1D, 802.1Q). */
const BRIDGE_GROUP: Expression = {
  match: 'raw',
  field: { base: 'link', offsetBytes: 0, lengthBytes: 5 },
  op: '==',
  value: 0x01_80c2_0000,
};

/** The elements that a pod has. */
export const portSets = ({ interfaceIndex, mac, addresses }: PodPort): SetSpec[] => {
  const port = String(interfaceIndex);
  // What the pod's kernel gives its interface.
  const linkLocal = formatAddress(linkLocalOf(mac));
  const of = (family: 4 | 6): string[] =>
    addresses
      .filter((address) => address.includes(':') === (family === 6))
      .map((address) => `${port} . ${mac} . ${address}`);
  return [
    { name: 'ports', type: 'iif', elements: [port] },
    { name: 'macs', type: 'iif . ether', elements: [`${port} . ${mac}`] },
    { name: 'ipv4', type: 'iif . ether . ipv4', elements: of(4) },
    { name: 'ipv6', type: 'iif . ether . ipv6', elements: [...of(6), `${port} . ${mac} . ${linkLocal}`] },
  ];
};

const NO_ELEMENTS = portSets({ interfaceIndex: 0, mac: '00:00:00:00:00:00', addresses: [] });

const mergedSets = (ports: readonly PodPort[]): SetSpec[] => {
  const each = ports.map(portSets);
  return NO_ELEMENTS.map((set, index) => ({ ...set, elements: each.flatMap((sets) => sets[index]!.elements) }));
};

/** Most frames end at the first rule that fits: one look into one set. */
const frames: ChainSpec = {
  name: 'frames',
  base: baseOf(GUARD_CHAINS.frames),
  rules: [
    rule('IPv4 of the pod', own('ipv4', '==', 'ether.saddr', 'ip.saddr'), accept),
    rule('IPv6 of the pod', own('ipv6', '==', 'ether.saddr', 'ip6.saddr'), { do: 'goto', chain: 'own_ipv6' }),
    rule('no port of a pod', own('ports', '!='), accept),
    rule('another MAC', own('macs', '!=', 'ether.saddr'), drop('mac')),
    rule('ARP', field('ether.type', ETHERTYPE.arp), { do: 'goto', chain: 'arp' }),
    rule('IPv6 of nobody yet', field('ether.type', ETHERTYPE.ipv6), { do: 'goto', chain: 'unspecified_ipv6' }),
    rule('IPv4 of others', field('ether.type', ETHERTYPE.ipv4), drop('ipv4')),
    { expressions: [drop('protocol')], comment: 'VLAN tags, spanning tree and all else' },
  ],
};

/** What a bridge keeps to itself never comes to the other hook. */
const bridgeGroup: ChainSpec = {
  name: 'bridge_group',
  base: baseOf(GUARD_CHAINS.bridgeGroup),
  rules: [rule('addressed to the bridge itself', BRIDGE_GROUP, own('ports', '=='), drop('protocol'))],
};

/** A probe (RFC 5227) has no sender address yet. */
const arp: ChainSpec = {
  name: 'arp',
  rules: [
    rule(
      'not of Ethernet and IPv4',
      { match: 'raw', field: { base: 'network', offsetBytes: 0, lengthBytes: 6 }, op: '!=', value: ARP_ETHERNET_IPV4 },
      drop('arp'),
    ),
    rule('another MAC within', own('macs', '!=', 'arp.sha'), drop('arp')),
    rule('sender', own('ipv4', '==', 'ether.saddr', 'arp.spa'), accept),
    rule(
      'probe for an own address',
      field('arp.operation', ARP_REQUEST),
      field('arp.spa', 0),
      own('ipv4', '==', 'ether.saddr', 'arp.tpa'),
      accept,
    ),
    { expressions: [drop('arp')] },
  ],
};

const dropChain = (reason: DropReason): ChainSpec => ({
  name: dropChainOf(reason),
  rules: [rule(reason, { do: 'count-interface', at: dropSet(reason) }, { do: 'counter' }, { do: 'drop' })],
});

/** The table for these pods. */
export const planGuardTable = (ports: readonly PodPort[]): TableSpec => ({
  family: 'bridge',
  name: NFT_GUARD_TABLE,
  sets: [
    ...mergedSets(ports),
    ...DROP_REASONS.map((reason): SetSpec => ({
      name: dropSet(reason),
      type: 'iif',
      elements: [],
      dynamic: DROPS_KEPT,
    })),
  ],
  chains: [frames, bridgeGroup, arp, ...neighborDiscoveryChains, ...DROP_REASONS.map(dropChain)],
});
