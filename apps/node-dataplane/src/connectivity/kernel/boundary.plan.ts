import { ENTERED_MARK, MARK_MASK } from '@unbounded/config/ownership';
import { ECHO_PORTS } from '@unbounded/health';
import type { Expression, RuleSpec, SetSpec } from '@unbounded/nftables';
import { DEVICES } from '../../data-path/devices.ts';
import { ownEchoAddresses } from '../../data-path/echo-addresses.ts';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { nativePrefixes } from '../../data-path/routes.plan.ts';
import type { BoundaryAdditions } from '../../kernel/boundary-additions.ts';
import { baseOf, CONNECTIVITY_CHAINS } from '../../kernel/base-chains.ts';
import { addressSet, addressSets, isIn } from '../../kernel/address-sets.ts';
import { COUNTERS, ENDS, type FirewallPart, nativeMeanwhile } from './firewall-parts.ts';
import { FAMILIES, type Family, familyOf } from '../../kernel/nft-family.ts';
import { LEAKS } from './leaks.plan.ts';
import { entriesOf } from './overlay-traffic.plan.ts';
import type { OwnNetwork } from './own-network.ts';
import { ICMP, ICMPV6, UDP } from '../../kernel/protocol-numbers.ts';

/**
 * The boundary of the overlay, for forwarded packets. Out of a tunnel, or natively from somebody else's pod: to this node's pods, at a
 * gateway on by the overlay, to an exit, or as a part of a connection that this node translated. Into a tunnel from a device that is not
 * ours: with a source of the list that comes by the way back to it, with this node's address, or as an answer. Nothing else.
 */

const OUT = 'out_of_overlay';
const OUTSIDE = 'from_outside';
const INTO = 'entering';

const device = (key: 'iifname' | 'oifname', set: string, op: '==' | '!=' = '=='): Expression => ({
  match: 'device',
  key,
  op,
  set,
});
const isAnswer: Expression = { match: 'ct-direction', op: '==', value: 'reply' };
const perFamily = (rule: (family: Family) => RuleSpec): RuleSpec[] => FAMILIES.map(rule);

const locatorSets = ({ locators }: KernelPlan): SetSpec[] =>
  locators === undefined
    ? []
    : [
        addressSet('locators', 'ip6', locators.blocks),
        addressSet('own_locator', 'ip6', locators.own === undefined ? [] : [locators.own]),
      ];

const setsOf = (plan: KernelPlan, devices: readonly string[], additions: readonly BoundaryAdditions[]): SetSpec[] => {
  const { boundary } = plan;
  const added = (name: 'exits' | 'exitSources'): string[] => additions.flatMap((one) => one[name] ?? []);
  const notTunnels = new Set([...ENDS, ...additions.flatMap((one) => one.devices ?? [])]);
  const native = [...nativePrefixes(plan), ...(plan.alsoPlain ?? [])];
  return [
    { name: 'tunnel_devices', type: 'ifname', elements: devices.filter((name) => !notTunnels.has(name)) },
    ...addressSets('own_pods', boundary.ownPods),
    ...(plan.echoes === undefined ? [] : addressSets('echo_address', [...ownEchoAddresses(plan.echoes).values()])),
    // A gateway hands packets on to whom it is linked with natively.
    ...addressSets('exits', [...boundary.exits, ...(plan.role === 'gateway' ? native : []), ...added('exits')]),
    ...addressSets('exit_sources', added('exitSources')),
    ...addressSets('entries', entriesOf(plan, additions)),
    ...locatorSets(plan),
  ];
};

const toBridge: Expression = { match: 'meta', key: 'oifname', op: '==', value: DEVICES.bridge };

/** Connection tracking knows what this node translated: a Service's packets, and what answers or is an error about them. */
const translated: readonly RuleSpec[] = [
  { comment: 'a Service of this node', expressions: [{ match: 'ct-translated', of: 'daddr' }, { do: 'return' }] },
  {
    comment: 'an answer to what left with the address of this node',
    expressions: [isAnswer, { match: 'ct-translated', of: 'saddr' }, { do: 'return' }],
  },
];

const toEchoes: Expression = { match: 'meta', key: 'oifname', op: '==', value: DEVICES.echo };
const isEcho: Expression[] = [
  { match: 'meta', key: 'l4proto', op: '==', value: UDP },
  { match: 'payload', field: 'th.dport', op: '==', value: ECHO_PORTS.destination },
];
/** ICMP and ICMPv6: the kernel tells who may not need it for that, and cannot be told not to for a device alone. */
const REDIRECTS = [ICMP, ICMPV6];
const strayEcho: RuleSpec = {
  comment: 'no echo of this node',
  expressions: [toEchoes, { do: 'counter', name: COUNTERS.strayEcho }, { do: 'drop' }],
};

/** Only frames between nodes go to a locator: no pod, no peer with another source and no host beside the node reaches one. */
const betweenLocators = (plan: KernelPlan): RuleSpec[] =>
  plan.locators === undefined
    ? []
    : [
        {
          comment: 'to a locator, but not from one',
          expressions: [
            isIn('ip6', 'daddr', 'locators'),
            isIn('ip6', 'saddr', 'locators', '!='),
            { do: 'counter', name: COUNTERS.unlistedEntry },
            { do: 'drop' },
          ],
        },
      ];

/** Its device is that of the section for stretched L2; without it the packet goes nowhere. */
const toOwnLocator = (plan: KernelPlan): RuleSpec[] =>
  plan.locators === undefined
    ? []
    : [
        {
          comment: 'frames for this node',
          expressions: [
            isIn('ip6', 'daddr', 'own_locator'),
            device('oifname', 'tunnel_devices', '!='),
            device('oifname', 'overlay_devices'),
            { do: 'return' },
          ],
        },
        {
          comment: 'frames for this node, which takes none',
          expressions: [
            isIn('ip6', 'daddr', 'own_locator'),
            { do: 'counter', name: COUNTERS.unlistedExit },
            { do: 'drop' },
          ],
        },
      ];

const outOfOverlay = (plan: KernelPlan): RuleSpec[] => [
  ...toOwnLocator(plan),
  { comment: 'to a pod of this node', expressions: [toBridge, { do: 'return' }] },
  ...(plan.role === 'gateway'
    ? [
        {
          comment: 'on by the overlay',
          expressions: [device('oifname', 'tunnel_devices'), { do: 'return' }],
        } as RuleSpec,
      ]
    : []),
  ...(plan.echoes === undefined
    ? []
    : [
        ...perFamily((family) => ({
          comment: `${family}: an echo that came back`,
          expressions: [toEchoes, isIn(family, 'saddr', 'echo_address'), ...isEcho, { do: 'return' }],
        })),
        ...REDIRECTS.map((protocol): RuleSpec => ({
          comment: 'of a gateway that returned one by the way it came',
          expressions: [toEchoes, { match: 'meta', key: 'l4proto', op: '==', value: protocol }, { do: 'drop' }],
        })),
        strayEcho,
      ]),
  ...perFamily((family) => ({
    comment: `${family}: to an exit`,
    expressions: [isIn(family, 'daddr', 'exits'), { do: 'return' }],
  })),
  ...perFamily((family) => ({
    comment: `${family}: whose exit this node is`,
    expressions: [isIn(family, 'saddr', 'exit_sources'), { do: 'return' }],
  })),
  ...translated,
  ...perFamily((family) => ({
    comment: `${family}: an answer to who may enter here`,
    expressions: [isAnswer, isIn(family, 'daddr', 'entries'), { do: 'return' }],
  })),
  { comment: 'no way out here', expressions: [{ do: 'counter', name: COUNTERS.unlistedExit }, { do: 'drop' }] },
];

const isOverlayAddress = (family: Family): RuleSpec => ({
  comment: `${family}: lives in the overlay, and does not come from outside`,
  expressions: [isIn(family, 'saddr', 'overlay'), { do: 'counter', name: COUNTERS.forgedSource }, { do: 'drop' }],
});

const fromOutside: readonly RuleSpec[] = [
  {
    comment: 'translated: to a Service of this node',
    expressions: [{ match: 'ct-translated', of: 'daddr' }, { do: 'return' }],
  },
  ...FAMILIES.map(isOverlayAddress),
];

export const hasEntered: Expression = { match: 'meta', key: 'mark', op: '==', value: ENTERED_MARK, mask: MARK_MASK };
const enters: Expression = { set: 'mark', value: ENTERED_MARK, mask: MARK_MASK };
const withoutMark: Expression = { set: 'mark', value: 0, mask: MARK_MASK };

/**
 * Whether it enters is decided behind the translation of sources. Whether it came by the way back is known before: kernels before 5.19
 * look up a way back at no later hook.
 */
const arriving = (network: OwnNetwork): RuleSpec[] => [
  { comment: 'from the overlay', expressions: [device('iifname', 'overlay_devices'), { do: 'return' }] },
  ...perFamily((family) => ({
    comment: `${family}: may enter, and came by the way back`,
    expressions: [isIn(family, 'saddr', 'entries'), { match: 'route-back', found: true }, enters],
  })),
  ...nativeMeanwhile(network, 'its way back is about to follow, or was natively until now', enters),
];

const nativePods: readonly RuleSpec[] = ['plain', 'also_plain'].flatMap((set) =>
  perFamily((family) => ({
    comment: `${family}: somebody else's pod, natively`,
    expressions: [isIn(family, 'saddr', 'pods'), isIn(family, 'saddr', set), { do: 'goto', chain: OUT }],
  })),
);

/** Most packets are from pods of this node or out of a tunnel: what tells them comes first, and names are compared faster than looked up. */
const fromBridge: RuleSpec = {
  comment: 'from the bridge',
  expressions: [
    { match: 'meta', key: 'iifname', op: '==', value: DEVICES.bridge },
    { match: 'meta', key: 'oifname', op: '!=', value: DEVICES.echo },
    { do: 'return' },
  ],
};

const crossing = (plan: KernelPlan): RuleSpec[] => [
  ...betweenLocators(plan),
  fromBridge,
  { comment: 'out of a tunnel', expressions: [device('iifname', 'tunnel_devices'), { do: 'goto', chain: OUT }] },
  ...(plan.echoes === undefined ? [] : [strayEcho]),
  { comment: 'from the overlay', expressions: [device('iifname', 'overlay_devices'), { do: 'return' }] },
  {
    comment: 'may enter, and does not',
    expressions: [hasEntered, device('oifname', 'tunnel_devices', '!='), withoutMark],
  },
  { comment: 'from outside', expressions: [{ do: 'jump', chain: OUTSIDE }] },
  ...nativePods,
];

/** The eBPF programs do this themselves, behind this hook, since they go by the destination. */
const turnRound = ({ dataplane, echoes }: KernelPlan): RuleSpec[] => {
  if (dataplane === 'ebpf') return [];
  return [...ownEchoAddresses(echoes).values()].map((address): RuleSpec => {
    const family = familyOf(address);
    return {
      comment: `${family}: an echo is to come back`,
      expressions: [
        { match: 'meta', key: 'iifname', op: '==', value: DEVICES.echo },
        { match: 'payload', field: `${family}.saddr`, op: '==', value: address },
        { set: `${family}.daddr` as const, to: address },
        { do: 'return' },
      ],
    };
  });
};

const entering = (plan: KernelPlan): RuleSpec[] => [
  ...turnRound(plan),
  { comment: 'from the overlay', expressions: [device('iifname', 'overlay_devices'), { do: 'return' }] },
  {
    comment: 'of this node: it came by no device',
    expressions: [{ match: 'meta', key: 'iif', op: '==', value: 0 }, { do: 'return' }],
  },
  { comment: 'may enter', expressions: [hasEntered, withoutMark, { do: 'return' }] },
  {
    comment: 'with an address of this node',
    expressions: [{ match: 'fib-type', address: 'saddr', op: '==', type: 'local' }, { do: 'return' }],
  },
  { comment: 'an answer to the overlay', expressions: [isAnswer, { do: 'return' }] },
  {
    comment: 'an error about a connection',
    expressions: [{ match: 'ct-state', states: ['related'] }, { do: 'return' }],
  },
  { comment: 'not listed', expressions: [{ do: 'counter', name: COUNTERS.unlistedEntry }, { do: 'drop' }] },
];

/** What leaves the node goes through one chain: each at a hook costs every packet its part. */
const leaving: readonly RuleSpec[] = [
  { comment: 'to a pod of this node', expressions: [toBridge, { do: 'return' }] },
  { comment: 'into a tunnel', expressions: [device('oifname', 'tunnel_devices'), { do: 'goto', chain: INTO }] },
  { comment: 'by another device', expressions: [{ do: 'goto', chain: LEAKS }] },
];

/**
 * @param devices of the overlay, the bridge too, also those that the plan no longer wants
 * @param additions of other sections
 */
export const planBoundaryRules = (
  plan: KernelPlan,
  devices: readonly string[],
  network: OwnNetwork,
  additions: readonly BoundaryAdditions[] = [],
): FirewallPart => ({
  sets: setsOf(plan, devices, additions),
  chains: [
    { name: OUT, rules: outOfOverlay(plan) },
    { name: OUTSIDE, rules: fromOutside },
    // Every packet of the node would go through it for nothing.
    ...(entriesOf(plan, additions).length > 0
      ? [{ name: 'arriving', base: baseOf(CONNECTIVITY_CHAINS.arriving), rules: arriving(network) }]
      : []),
    { name: 'boundary', base: baseOf(CONNECTIVITY_CHAINS.boundary), rules: crossing(plan) },
    { name: INTO, rules: entering(plan) },
    { name: 'leaving', base: baseOf(CONNECTIVITY_CHAINS.leaving), rules: leaving },
  ],
});
