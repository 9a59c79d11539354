import { PASSING_MARK } from '@unbounded/config/ownership';
import type { Expression, RuleSpec, SetSpec } from '@unbounded/nftables';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { baseOf, CONNECTIVITY_CHAINS } from '../../kernel/base-chains.ts';
import { hasEntered } from './boundary.plan.ts';
import { addressSets, isIn } from '../../kernel/address-sets.ts';
import type { FirewallPart } from './firewall-parts.ts';
import { FAMILIES } from '../../kernel/nft-family.ts';
import { UDP } from '../../kernel/protocol-numbers.ts';
import { nodeAddresses, peerAddresses, portsOfAnybody } from './overlay-traffic.plan.ts';
import type { TakenPackets } from './taken-packets.plan.ts';

/**
 * Which packets a firewall of the host must not drop: they get a mark before its filters, at forward and input, behind our own drops.
 * Forwarded: what comes out of the overlay or from a pod of the node, what may enter the overlay, answers, and what a node that has a tunnel
 * to this one sends to a Service here, by the LAN. To the node: what comes out of the overlay, and tunnel packets of peers. What a stranger
 * sends to a pod (a NodePort) is not among it: the firewall decides.
 */

const PEERS = 'tunnel_peers';
const NODES = 'linked_nodes';

const setsOf = (plan: KernelPlan): SetSpec[] => [
  ...addressSets(PEERS, peerAddresses(plan)),
  ...addressSets(NODES, nodeAddresses(plan)),
  { name: 'wireguard_ports_of_anybody', type: 'port', elements: portsOfAnybody(plan).map(String) },
];

const hasMark: Expression = { match: 'meta', key: 'mark', op: '==', value: PASSING_MARK, mask: PASSING_MARK };
const unmarked: RuleSpec = {
  comment: 'nobody else says that it passes',
  expressions: [hasMark, { set: 'mark', value: 0, mask: PASSING_MARK }],
};
const behindFilters: RuleSpec = { ...unmarked, comment: 'behind the filters' };
const passes = (comment: string, ...matches: Expression[]): RuleSpec => ({
  comment,
  expressions: [...matches, { set: 'mark', value: PASSING_MARK, mask: PASSING_MARK }, { do: 'return' }],
});

const fromOverlay: Expression = { match: 'device', key: 'iifname', op: '==', set: 'overlay_devices' };
const isUdpTo = (set: string): Expression[] => [
  { match: 'meta', key: 'l4proto', op: '==', value: UDP },
  { match: 'set', field: 'th.dport', op: '==', set },
];

const isOfPeer = FAMILIES.map((family) => isIn(family, 'saddr', PEERS));

/** By the LAN: translated here, to a pod or to a program of this node. */
const toServices = FAMILIES.map((family) =>
  passes('of a node, to a Service', isIn(family, 'saddr', NODES), { match: 'ct-translated', of: 'daddr' }),
);

const forwarded: readonly RuleSpec[] = [
  unmarked,
  passes('from a pod or out of the overlay', fromOverlay),
  {
    comment: 'not to a pod nor into the overlay',
    expressions: [{ match: 'device', key: 'oifname', op: '!=', set: 'overlay_devices' }, { do: 'return' }],
  },
  passes('may enter', hasEntered),
  passes('an answer', { match: 'ct-direction', op: '==', value: 'reply' }),
  passes('an error about a connection', { match: 'ct-state', states: ['related'] }),
  ...toServices,
  ...['plain', 'also_plain'].flatMap((set) =>
    FAMILIES.map((family) =>
      passes(`${family}: somebody else's pod, natively`, isIn(family, 'saddr', 'pods'), isIn(family, 'saddr', set)),
    ),
  ),
];

/** Devices that take packets of everybody have no set of far ends. */
const tunnelPackets = (packets: readonly TakenPackets[]): Expression[][] =>
  packets.flatMap(({ sets, matches }) =>
    matches.flatMap((match) => (sets.length > 0 ? [[...match]] : isOfPeer.map((ofPeer) => [ofPeer, ...match]))),
  );

const toNode = (packets: readonly TakenPackets[]): RuleSpec[] => [
  unmarked,
  {
    comment: 'to the loopback of the node, by another way', // where route_localnet is on (CVE-2020-8558)
    expressions: [{ match: 'payload', field: 'ip.daddr', op: '==', value: '127.0.0.0/8' }, { do: 'return' }],
  },
  passes('from a pod or out of the overlay', fromOverlay),
  ...toServices,
  ...isOfPeer.map((ofPeer) => passes('WireGuard of a peer', ofPeer, ...isUdpTo('own_wireguard_ports'))),
  passes('WireGuard of a peer that finds the node', ...isUdpTo('wireguard_ports_of_anybody')),
  ...tunnelPackets(packets).map((match) => passes('a tunnel of a peer', ...match)),
];

/** @param packets what our tunnel devices take */
export const planPassing = (plan: KernelPlan, packets: readonly TakenPackets[]): FirewallPart => ({
  sets: setsOf(plan),
  chains: [
    { name: 'passing_forward', base: baseOf(CONNECTIVITY_CHAINS.passingForward), rules: forwarded },
    { name: 'passing_input', base: baseOf(CONNECTIVITY_CHAINS.passingInput), rules: toNode(packets) },
    // Also at input: a tunnel's packet gives its mark to the one inside.
    { name: 'passed', base: baseOf(CONNECTIVITY_CHAINS.passed), rules: [behindFilters] },
    { name: 'passed_input', base: baseOf(CONNECTIVITY_CHAINS.passedInput), rules: [behindFilters] },
  ],
});
