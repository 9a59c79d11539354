import { baseOf, CONNECTIVITY_CHAINS } from '../../kernel/base-chains.ts';
import { PORTS } from '@unbounded/config/ownership';
import type { Expression, RuleSpec, SetSpec } from '@unbounded/nftables';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { addressSets, isIn } from '../../kernel/address-sets.ts';
import { COUNTERS, type FirewallPart } from './firewall-parts.ts';
import { FAMILIES } from '../../kernel/nft-family.ts';
import { TCP, TUNNEL_PROTOCOLS, UDP } from '../../kernel/protocol-numbers.ts';

/**
 * Tunnel packets of pods go to pods only. A node sends such a packet on with its own address (masquerading), by which the receiver knows
 * the sender: it would take the inner packet, whose source the pod made up, for one of that node. Which addresses reach a node no list
 * says: a NAT may stand before it, and it may have more than one. WireGuard's keys protect its ports: pods may use a VPN somewhere else.
 * So they are dropped where they come in, at the pod's node; and at every other one where they come out of the overlay.
 *
 * Fragments: the masquerading of our own table makes the kernel reassemble packets of both families before it, at
 * priority -400, so that each has its ports here.
 */

/** Nobody's alone: a node's tunnel devices take these as well. */
const TO_MANY = ['224.0.0.0/4', '255.255.255.255/32', 'ff00::/8'];

const UDP_PACKETS = 'udp_packets';
const CHECK = 'tunnel_packets';
const CHECK_WIREGUARD = 'wireguard_packets';
const TO_OTHERS = 'tunnel_packets_to_others';
const TO_NODES = 'tunnel_packets_to_nodes';

const wireGuardPorts = (plan: KernelPlan): number[] => [
  ...new Set([...plan.tunnelEnds.wireGuardPorts, ...plan.wireGuard.map(({ listenPort }) => listenPort)]),
];

const setsOf = (plan: KernelPlan): SetSpec[] => [
  { name: 'tunnel_ports', type: 'port', elements: [PORTS.vxlan, PORTS.geneve].map(String) },
  { name: 'wireguard_ports', type: 'port', elements: wireGuardPorts(plan).map(String) },
  ...addressSets('tunnel_ends', [...plan.tunnelEnds.addresses, ...TO_MANY]),
  ...addressSets('pod_tunnels', plan.tunnelEnds.allowed ?? []),
];

const isTo = (set: string): Expression => ({ match: 'set', field: 'th.dport', op: '==', set });

/** Most packets are no tunnel's: each rule costs every packet its part. */
const isTunnelPacket: readonly RuleSpec[] = [
  {
    comment: 'no tunnel',
    expressions: [{ match: 'meta', key: 'l4proto', op: '==', value: TCP }, { do: 'return' }],
  },
  {
    comment: 'UDP',
    expressions: [
      { match: 'meta', key: 'l4proto', op: '==', value: UDP },
      { do: 'goto', chain: UDP_PACKETS },
    ],
  },
  ...TUNNEL_PROTOCOLS.map((protocol): RuleSpec => ({
    comment: `IP protocol ${protocol}`,
    expressions: [
      { match: 'meta', key: 'l4proto', op: '==', value: protocol },
      { do: 'goto', chain: CHECK },
    ],
  })),
];

const isUdpTunnel: readonly RuleSpec[] = [
  { comment: 'VXLAN, GENEVE', expressions: [isTo('tunnel_ports'), { do: 'goto', chain: CHECK }] },
  {
    comment: 'WireGuard; an answer to a port that the node has for a moment is none',
    expressions: [
      isTo('wireguard_ports'),
      { match: 'ct-state', states: ['new', 'invalid', 'untracked'] },
      { do: 'goto', chain: CHECK_WIREGUARD },
    ],
  },
];

/** By the bridge or a tunnel; where another plugin connects the pods, by whatever device, with a pod's address. */
const ofPods = (chain: string): RuleSpec[] => [
  {
    comment: 'from pods or the overlay',
    expressions: [
      { match: 'device', key: 'iifname', op: '==', set: 'overlay_devices' },
      { do: 'goto', chain },
    ],
  },
  ...FAMILIES.map((family): RuleSpec => ({
    comment: `${family}: from pods`,
    expressions: [isIn(family, 'saddr', 'pods'), { do: 'goto', chain }],
  })),
];

const drop = (comment: string, ...match: Expression[]): RuleSpec => ({
  comment,
  expressions: [...match, { do: 'counter', name: COUNTERS.injectedTunnelPacket }, { do: 'drop' }],
});

const toNodes: readonly RuleSpec[] = [
  ...FAMILIES.map((family) => drop(`${family}: to a node`, isIn(family, 'daddr', 'tunnel_ends'))),
  ...(['local', 'broadcast'] as const).map((type) =>
    drop(`to this node: ${type}`, { match: 'fib-type', address: 'daddr', op: '==', type }),
  ),
];

/** A node has an address among its pods', too. */
const toOthers: readonly RuleSpec[] = [
  ...toNodes,
  ...(['pods', 'pod_tunnels'] as const).flatMap((set) =>
    FAMILIES.map((family): RuleSpec => ({
      comment: `${family}: to ${set === 'pods' ? 'a pod' : 'where pods may have tunnels'}`,
      expressions: [isIn(family, 'daddr', set), { do: 'return' }],
    })),
  ),
  drop('to what is no pod'),
];

export const planInjection = (plan: KernelPlan): FirewallPart => ({
  sets: setsOf(plan),
  chains: [
    { name: 'injection_forward', base: baseOf(CONNECTIVITY_CHAINS.injectionForward), rules: isTunnelPacket },
    { name: 'injection_input', base: baseOf(CONNECTIVITY_CHAINS.injectionInput), rules: isTunnelPacket },
    { name: UDP_PACKETS, rules: isUdpTunnel },
    { name: CHECK, rules: ofPods(TO_OTHERS) },
    { name: CHECK_WIREGUARD, rules: ofPods(TO_NODES) },
    { name: TO_OTHERS, rules: toOthers },
    { name: TO_NODES, rules: toNodes },
  ],
});
