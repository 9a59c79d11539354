import { EGRESS_MARK_MASK, EGRESS_MARKS } from '@unbounded/config/ownership';
import type { Expression, RawField, RuleSpec } from '@unbounded/nftables';
import { setName } from '../../kernel/address-sets.ts';
import type { Family } from '../../kernel/nft-family.ts';

/** Names in the tables of egress, and the steps that its chains have in common. */

/** Why a packet was dropped: the names of counters, and values of the metric's label `reason`. */
export const EGRESS_DROPS = {
  /** No node owns the address, or the rule has none of the family. */
  unavailable: 'no_owner',
  /** Connection tracking knows no connection that it could belong to: it would leave untranslated. */
  invalid: 'egress_invalid',
  /** Of a connection from before the rule, or from before its address changed. */
  predates: 'predates_rule',
  /** Out of the tunnel, from a pod that may not leave here or to where it may not. */
  stray: 'stray_egress',
  /** A packet of the tunnel that is not from the node that it should be from. */
  forged: 'forged_egress_tunnel',
  /** The routes led elsewhere than decided. */
  wrongWay: 'egress_wrong_way',
  /** About to leave with another source than its egress address, or with an egress address that is not its own. */
  wrongSource: 'egress_wrong_source',
  /** To an egress address, and no answer. */
  unsolicited: 'egress_unsolicited',
} as const;

/** Named by the fence, which is a table of its own. */
export const FENCE_DROP = 'egress_not_owned';

export const SETS = {
  /** Addresses of pods of this node that are selected. */
  selected: 'selected',
  /** Of pods of other nodes that leave here. */
  remote: 'remote',
  cluster: 'cluster',
  apiServices: 'api_services',
  /** Egress addresses of this node. */
  owned: 'owned',
  podBlocks: 'pod_blocks',
  overlay: 'overlay_devices',
  /** Of the fence: those that the node may use right now. */
  live: 'live',
} as const;

export type Decision = keyof typeof EGRESS_MARKS;

export const isMarked = (decision: Decision, op: '==' | '!=' = '=='): Expression => ({
  match: 'meta',
  key: 'mark',
  op,
  value: EGRESS_MARKS[decision],
  mask: EGRESS_MARK_MASK,
});

/** The chain of the hook has decided. */
export const decide = (decision: Decision): readonly Expression[] => [
  { set: 'mark', value: EGRESS_MARKS[decision], mask: EGRESS_MARK_MASK },
  { do: 'return' },
];

export const drop = (reason: keyof typeof EGRESS_DROPS): readonly Expression[] => [
  { do: 'counter', name: EGRESS_DROPS[reason] },
  { do: 'drop' },
];

export const rule = (comment: string, ...expressions: readonly Expression[]): RuleSpec => ({ comment, expressions });

export const fromDevice = (device: string): Expression => ({ match: 'meta', key: 'iifname', op: '==', value: device });
export const byDevice = (device: string, op: '==' | '!=' = '=='): Expression => ({
  match: 'meta',
  key: 'oifname',
  op,
  value: device,
});
/** The target of a neighbor solicitation, from the ICMPv6 header (RFC 4861 4.3). */
export const SOLICITED: RawField = { base: 'transport', offsetBytes: 8, lengthBytes: 16 };

export const isAnswer: Expression = { match: 'ct-direction', op: '==', value: 'reply' };

/** Where the packets of a connection go in one direction, as connection tracking has it. */
const isConnectionTo = (direction: 'original' | 'reply', family: Family, set: string): Expression => ({
  match: 'ct-address-set',
  direction,
  family,
  address: 'daddr',
  op: '==',
  set: setName(set, family),
});

/** Of a connection that left with an address of this node, or an error about one. */
export const leftFromHere = (family: Family): Expression => isConnectionTo('reply', family, SETS.owned);

/** Of a connection that was opened to one of these addresses, wherever the translation of Services has led it. */
export const openedTo = (family: Family, set: typeof SETS.owned | typeof SETS.apiServices): Expression =>
  isConnectionTo('original', family, set);

export const clearMark: Expression = { set: 'mark', value: 0, mask: EGRESS_MARK_MASK };

const isIcmpv6 = (type: number): Expression => ({ match: 'payload', field: 'icmpv6.type', op: '==', value: type });
export const isSolicitation = isIcmpv6(135);
const isAdvertisement = isIcmpv6(136);

/** Neighbor discovery (RFC 4861) goes on: the kernel answers for an address from that address. */
export const neighborDiscovery: readonly RuleSpec[] = [isSolicitation, isAdvertisement].map((match) =>
  rule('neighbor discovery', match, { do: 'return' }),
);
