import { METRICS_PORTS } from '@unbounded/config/ownership';
import { baseOf, CONNECTIVITY_CHAINS } from '../../kernel/base-chains.ts';
import type { Expression, RuleSpec, SetSpec } from '@unbounded/nftables';
import { DEVICES } from '../../data-path/devices.ts';
import { nativePrefixes } from '../../data-path/routes.plan.ts';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { planRelayWays, type RelayWays } from '../relay/relay-ways.plan.ts';
import type { TableContent } from '../../kernel/section-table.ts';
import type { BoundaryAdditions } from '../../kernel/boundary-additions.ts';
import { planBoundaryRules } from './boundary.plan.ts';
import { addressSets, isIn } from '../../kernel/address-sets.ts';
import { COUNTERS, ENDS, nativeMeanwhile, nativeSets } from './firewall-parts.ts';
import { planIcmpErrors } from './icmp-errors.plan.ts';
import { planInjection } from './injection.plan.ts';
import { planArp, planNeighbors } from './neighbors.plan.ts';
import { planListeners } from './listeners.plan.ts';
import { planLeaks } from './leaks.plan.ts';
import { planOneSided } from './one-sided.plan.ts';
import { planPassing } from './passing.plan.ts';
import { FAMILIES } from '../../kernel/nft-family.ts';
import { planNodeAddresses } from './node-addresses.plan.ts';
import { NO_NETWORK, type OwnNetwork } from './own-network.ts';
import { TCP } from '../../kernel/protocol-numbers.ts';
import { takenPackets, type Tunnel } from './taken-packets.plan.ts';
import { tunnelPeerSets, tunnelSourceRules } from './tunnel-sources.plan.ts';
import { planTunnelWays } from './tunnel-ways.plan.ts';
import { planSenders } from '../../data-path/netlink/senders.plan.ts';

/**
 * Connectivity's nftables table: no pod's address from where that pod is not, no tunnel packets from pods to nodes, no ICMP errors about
 * tunnels, nothing for the overlay outside of it, nothing over its boundary that is not listed, masquerading, the clamp of TCP segments,
 * and the way to the managed relay. It accepts nothing on behalf of others: a verdict of "accept" ends only our own chain, so the
 * NetworkPolicy of another table still decides.
 */

const overlayDevices = (plan: KernelPlan): string[] =>
  [
    DEVICES.anchor,
    DEVICES.bridge,
    ...(plan.echoes === undefined ? [] : [DEVICES.echo]),
    ...plan.tunnels.map(({ device }) => device),
    ...plan.wireGuard.map(({ name }) => name),
  ].sort();

/** Devices of the plan; without the bridge, those whose packets get larger. */
const [PLANNED, NARROW] = ['planned_devices', 'narrow_devices'] as const;

/** The node's own addresses: those by which others know it, and those that packets reach by any device. */
const ownAddressSets = ({ ownAddresses }: KernelPlan, { floating }: OwnNetwork): SetSpec[] => [
  ...addressSets('internal_addresses', ownAddresses),
  ...addressSets('floating_addresses', floating),
];

const setsOf = (plan: KernelPlan, network: OwnNetwork): SetSpec[] => [
  ...addressSets('pods', plan.masquerade.sources),
  ...addressSets('own_address', plan.masquerade.exceptTo),
  ...addressSets('plain', nativePrefixes(plan)),
  ...addressSets('also_plain', plan.alsoPlain ?? []),
  ...nativeSets(network),
];

/**
 * A pod's address comes out of a tunnel, before whose end it was checked, or from the bridge; from the underlay only where plain
 * routing leads back to it by the same device.
 */
const sourceRules = (network: OwnNetwork): RuleSpec[] => [
  {
    comment: 'checked where it came in',
    expressions: [{ match: 'device', key: 'iifname', op: '==', set: PLANNED }, { do: 'return' }],
  },
  {
    comment: 'our own',
    expressions: [{ match: 'meta', key: 'iifname', op: '==', value: 'lo' }, { do: 'return' }],
  },
  ...nativeMeanwhile(network, 'natively for a while', { do: 'return' }),
  ...FAMILIES.flatMap((family): RuleSpec[] => [
    {
      comment: `${family}: a pod's address that comes in by no tunnel is forged`,
      expressions: [
        isIn(family, 'saddr', 'pods'),
        isIn(family, 'saddr', 'plain', '!='),
        { do: 'counter', name: COUNTERS.forgedSource },
        { do: 'drop' },
      ],
    },
    {
      comment: `${family}: plain routing, but not from there`,
      expressions: [
        isIn(family, 'saddr', 'plain'),
        { match: 'route-back', found: false },
        { do: 'counter', name: COUNTERS.noRouteBack },
        { do: 'drop' },
      ],
    },
  ]),
];

const masqueradeRules = (plan: KernelPlan): RuleSpec[] => [
  ...tunnelSourceRules(plan),
  {
    comment: 'stays in the overlay',
    expressions: [{ match: 'device', key: 'oifname', op: '==', set: PLANNED }, { do: 'return' }],
  },
  {
    comment: 'local destinations',
    expressions: [{ match: 'fib-type', address: 'daddr', op: '==', type: 'local' }, { do: 'return' }],
  },
  ...FAMILIES.flatMap((family): RuleSpec[] => [
    {
      comment: `${family}: the node's pods leave the network as their node`,
      expressions: [
        isIn(family, 'saddr', 'own_pods'),
        isIn(family, 'daddr', 'own_address', '!='),
        { do: 'masquerade' },
      ],
    },
    {
      comment: `${family}: others' pods leave it here towards the exits of this node alone`,
      expressions: [
        isIn(family, 'saddr', 'pods'),
        isIn(family, 'daddr', 'exits'),
        isIn(family, 'daddr', 'own_address', '!='),
        { do: 'masquerade' },
      ],
    },
  ]),
];

/** SYN set, RST not: the first segments of either side, which carry the maximum segment size. */
const onlySyn: Expression[] = [
  { match: 'meta', key: 'l4proto', op: '==', value: TCP },
  { match: 'payload', field: 'tcp.flags', op: '==', value: 0x02, mask: 0x06 },
];

/** Most packets are none of these: what they are is asked before where they go. */
const clampRules: readonly RuleSpec[] = [
  {
    comment: 'segments fit the path',
    expressions: [
      ...onlySyn,
      { match: 'device', key: 'oifname', op: '==', set: NARROW },
      { set: 'tcp-mss', to: 'route-mtu' },
    ],
  },
];

/** What a table depends on besides the plan. */
export interface Surroundings {
  /** Our tunnel devices that are there; absent: those of the plan. */
  readonly tunnels?: readonly Tunnel[];
  /** To the managed relay, as far as they are known. */
  readonly relayWays?: RelayWays;
  /** Names of our devices that are there, also those that the plan no longer wants: routes may lead to them still. */
  readonly present?: readonly string[];
  readonly network?: OwnNetwork;
  /** TCP ports of metrics; absent: those that are so by default. */
  readonly metricsPorts?: readonly number[];
  /** Of other sections, to the boundary. */
  readonly additions?: readonly BoundaryAdditions[];
}

const devicesOfSections = (additions: readonly BoundaryAdditions[]): string[] =>
  additions.flatMap(({ devices }) => devices ?? []);

const NO_WAYS: RelayWays = { ways: [], isKubeProxyNft: false };

export const devicesOf = (plan: KernelPlan, present: readonly string[]): string[] =>
  [...new Set([...overlayDevices(plan), ...present])].sort();

/** Connectivity's table of the family arp. */
export const planArpTable = (
  plan: KernelPlan,
  { present = [], network = NO_NETWORK }: Pick<Surroundings, 'present' | 'network'> = {},
): TableContent => planArp(plan, devicesOf(plan, present), network);

/** Connectivity's table as the plan asks for it. */
export const planFirewall = (
  plan: KernelPlan,
  {
    tunnels = plan.tunnels,
    relayWays = NO_WAYS,
    present = [],
    network = NO_NETWORK,
    metricsPorts = METRICS_PORTS,
    additions = [],
  }: Surroundings = {},
): TableContent => {
  const ofSections = devicesOfSections(additions);
  const devices = devicesOf(plan, [...present, ...ofSections]);
  const planned = [...overlayDevices(plan), ...ofSections].sort();
  const packets = takenPackets(tunnels);
  const parts = [
    planInjection(plan),
    planIcmpErrors(plan),
    planLeaks(plan),
    planOneSided(plan),
    planBoundaryRules(plan, devices, network, additions),
    planNodeAddresses(plan),
    planNeighbors(plan, network),
    planListeners(network, metricsPorts),
    planTunnelWays(plan, packets, network),
    planSenders(plan, packets),
    ...(additions.some(({ marksPassing }) => marksPassing) ? [planPassing(plan, packets)] : []),
  ];
  return {
    drops: Object.values(COUNTERS),
    sets: [
      { name: 'overlay_devices', type: 'ifname', elements: devices },
      { name: PLANNED, type: 'ifname', elements: planned },
      { name: NARROW, type: 'ifname', elements: planned.filter((name) => !ENDS.has(name)) },
      ...setsOf(plan, network),
      ...ownAddressSets(plan, network),
      ...packets.flatMap(({ sets }) => sets),
      ...parts.flatMap(({ sets }) => sets),
      ...tunnelPeerSets(plan),
    ],
    chains: [
      ...parts.flatMap(({ chains }) => chains),
      // Where another plug-in manages the pods, their addresses come in by devices that only it knows.
      ...(plan.manageCni
        ? [{ name: 'sources', base: baseOf(CONNECTIVITY_CHAINS.sources), rules: sourceRules(network) } as const]
        : []),
      { name: 'postrouting', base: baseOf(CONNECTIVITY_CHAINS.postrouting), rules: masqueradeRules(plan) },
      { name: 'forward', base: baseOf(CONNECTIVITY_CHAINS.forward), rules: clampRules },
      ...planRelayWays(relayWays),
    ],
  };
};
