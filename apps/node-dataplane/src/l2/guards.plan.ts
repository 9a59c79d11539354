import { DEVICES } from '@unbounded/config/ownership';
import type { Expression, RuleSpec } from '@unbounded/nftables';
import { isIn, addressSet } from '../kernel/address-sets.ts';
import { baseOf, L2_CHAINS } from '../kernel/base-chains.ts';
import type { TableContent } from '../kernel/section-table.ts';
import { PORT_PREFIX } from './names.ts';

/**
 * Who may send to a locator: this node's ports, by the device of the section; and other nodes, by the overlay, whose sources connectivity has
 * checked, or without a tunnel (protocol None) by the device that leads back to them, where a host on their LAN can forge a node's address.
 * Packets of pods and of strangers that carry frames of their own making are dropped, wherever they are going.
 */

/** Why a packet was dropped: the names of counters, and values of the metric's label `reason`. */
export const L2_DROPS = {
  /** To a locator, from whom is neither a port nor the overlay. */
  stranger: 'l2_from_outside',
  /** Of a port without its program, which hands no frame to the node. */
  port: 'l2_port',
  /** Of a port, about to leave in the clear or to somewhere else than a node. */
  leak: 'l2_leak',
  /** Of the node, about a frame for which it has no way, for example while the agent starts: its sender is a program and reads none. */
  error: 'l2_error',
} as const;

const SETS = { locators: 'locators', native: 'native', overlay: 'overlay_devices' } as const;

const byName = (key: 'iifname' | 'oifname', op: '==' | '!=', value: string): Expression => ({
  match: 'meta',
  ...{ key, op, value },
});
const inOverlay = (key: 'iifname' | 'oifname', op: '==' | '!='): Expression => ({
  match: 'device',
  ...{ key, op, set: SETS.overlay },
});
const toLocator = (op: '==' | '!='): Expression => isIn('ip6', 'daddr', SETS.locators, op);
const drop = (reason: keyof typeof L2_DROPS): readonly Expression[] => [
  { do: 'counter', name: L2_DROPS[reason] },
  { do: 'drop' },
];
const rule = (comment: string, ...expressions: readonly Expression[]): RuleSpec => ({ comment, expressions });
const fromPorts = byName('iifname', '==', DEVICES.l2Entry);

const ofPort = rule('of a port that no program keeps', byName('iifname', '==', `${PORT_PREFIX}*`), ...drop('port'));

const forward: readonly RuleSpec[] = [
  ofPort,
  rule('of a port, to a node', fromPorts, toLocator('=='), inOverlay('oifname', '=='), { do: 'return' }),
  rule('of a port, to a node without a tunnel', fromPorts, toLocator('=='), isIn('ip6', 'daddr', SETS.native), {
    do: 'return',
  }),
  rule('of a port, elsewhere', fromPorts, ...drop('leak')),
  rule(
    'to a node, from one without a tunnel, by the way back to it',
    toLocator('=='),
    // Pods and nodes are reached without a tunnel as well, and send to no locator.
    isIn('ip6', 'saddr', SETS.locators),
    isIn('ip6', 'saddr', SETS.native),
    { match: 'route-back', found: true },
    { do: 'return' },
  ),
  rule('to a node, from neither a port nor a node', toLocator('=='), inOverlay('iifname', '!='), ...drop('stranger')),
  rule(
    'to the ports, and to no locator',
    byName('oifname', '==', DEVICES.l2Exit),
    toLocator('!='),
    ...drop('stranger'),
  ),
];

/** RFC 4443 2.1: destination unreachable, packet too big, time exceeded, parameter problem. */
const ICMPV6_ERRORS = [1, 2, 3, 4];

/** Frames are forwarded: nothing of the node itself goes to a locator. */
const output: readonly RuleSpec[] = [
  ...ICMPV6_ERRORS.map((value) =>
    rule(
      'of the node itself, about a frame',
      toLocator('=='),
      { match: 'payload', field: 'icmpv6.type', op: '==', value },
      ...drop('error'),
    ),
  ),
  rule('of the node itself', toLocator('=='), ...drop('stranger')),
];

export interface L2Guards {
  /** Blocks of locators, of this node too. */
  readonly locators: readonly string[];
  /** Blocks that are reached without a tunnel: of locators, pods and nodes. */
  readonly native: readonly string[];
  /** Devices by which nodes reach each other, without those of sections. */
  readonly overlayDevices: readonly string[];
}

export const planL2Guards = ({ locators, native, overlayDevices }: L2Guards): TableContent => ({
  drops: Object.values(L2_DROPS),
  sets: [
    addressSet(SETS.locators, 'ip6', locators),
    addressSet(SETS.native, 'ip6', native),
    { name: SETS.overlay, type: 'ifname', elements: [...overlayDevices].sort() },
  ],
  chains: [
    { name: L2_CHAINS.forward.name, base: baseOf(L2_CHAINS.forward), rules: forward },
    { name: L2_CHAINS.output.name, base: baseOf(L2_CHAINS.output), rules: output },
    { name: L2_CHAINS.input.name, base: baseOf(L2_CHAINS.input), rules: [ofPort] },
  ],
});
