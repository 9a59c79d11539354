import { FIREWALL_RULE_COMMENT, PASSING_MARK } from '@unbounded/config/ownership';
import {
  commentOf,
  type FilterRule,
  type FilterTable,
  isGoto,
  targetOf,
  withoutTarget,
} from './iptables-save.codec.ts';

/**
 * What a filter table of iptables needs so that it lets the overlay pass: our rule in FORWARD and in INPUT, before the first that refuses
 * whatever nobody has accepted, or at the end where the policy alone does so. It takes only packets with our mark, which our own table sets;
 * all others meet the chain as it was. What is refused for what it is (its addresses, ports, devices or state) stays refused, and so does
 * what a network policy denies: our rule stands behind these.
 */

export const OPENED_CHAINS = ['FORWARD', 'INPUT'] as const;
export type OpenedChain = (typeof OPENED_CHAINS)[number];

const MARK = `0x${PASSING_MARK.toString(16)}`;

/** As iptables-save prints it. */
export const OPENING: FilterRule = [
  ...['-m', 'mark', '--mark', `${MARK}/${MARK}`],
  ...['-m', 'comment', '--comment', FIREWALL_RULE_COMMENT],
  ...['-j', 'ACCEPT'],
];

/** Chains of those that enforce NetworkPolicy in iptables, and of kube-proxy and kubelet. */
const POLICY_CHAIN = /^(?:cali-|KUBE-|WEAVE-NPC|AZURE-NPM|ANTREA-)/;

const isOurs = (rule: FilterRule): boolean => commentOf(rule) === FIREWALL_RULE_COMMENT;
const isOpening = (rule: FilterRule): boolean =>
  rule.length === OPENING.length && rule.every((word, index) => word === OPENING[index]);
const isPolicy = (rule: FilterRule): boolean => POLICY_CHAIN.test(targetOf(rule) ?? '');

/** States of new connections; who refuses INVALID alone refuses what belongs to none. */
const isOfNew = (states: string): boolean => states.split(',').includes('NEW');

/** Matches by state, and their options. */
const STATES: Readonly<Record<string, string>> = { conntrack: '--ctstate', state: '--state' };

/** How many words of a match say nothing about a packet but that it is one of many; undefined: they choose it for what it is. */
const broadWords = (words: readonly string[], chain: OpenedChain): number | undefined => {
  const [first, second = ''] = words;
  if (first === '-m' && second === 'comment') return 4;
  if (first === '-m' && Object.hasOwn(STATES, second)) {
    const isOther = words[2] === '!';
    const [option, states = ''] = words.slice(isOther ? 3 : 2);
    return option === STATES[second] && isOfNew(states) !== isOther ? 4 + Number(isOther) : undefined;
  }
  // By which device it came to the node. What is forwarded between two devices is chosen by them.
  if (chain !== 'INPUT') return undefined;
  if (first === '-i') return 2;
  return first === '!' && second === '-i' ? 3 : undefined;
};

/** Whether the rule takes packets whatever they are. */
const isBroad = (rule: FilterRule, chain: OpenedChain): boolean => {
  let words = withoutTarget(rule);
  while (words.length > 0) {
    const count = broadWords(words, chain);
    if (count === undefined) return false;
    words = words.slice(count);
  }
  return true;
};

interface Place {
  readonly table: FilterTable;
  readonly chain: OpenedChain;
  /** Where a RETURN leads to the policy. */
  readonly isBase: boolean;
  readonly seen: ReadonlySet<string>;
}

/** Whether it ends a packet that nobody has accepted, also in a chain that it leads to. Targets that are not known decide for themselves. */
const refusesAll = (rule: FilterRule, { table, chain, isBase, seen }: Place): boolean => {
  const target = targetOf(rule);
  if (target === undefined || isPolicy(rule) || seen.has(target) || !isBroad(rule, chain)) return false;
  if (target === 'DROP' || target === 'REJECT') return true;
  const fallsToPolicy = isBase && table.get(chain)?.policy === 'DROP';
  if (fallsToPolicy && (target === 'RETURN' || isGoto(rule))) return true;
  const next: Place = { table, chain, isBase: false, seen: new Set([...seen, target]) };
  return table.get(target)?.rules.some((one) => refusesAll(one, next)) ?? false;
};

/** Targets after which a packet goes on, or is accepted. Of others only their programs know. */
const HARMLESS: ReadonlySet<string> = new Set([
  ...['ACCEPT', 'RETURN', 'LOG', 'NFLOG', 'ULOG', 'AUDIT', 'TRACE'],
  ...['MARK', 'CONNMARK', 'CLASSIFY', 'TCPMSS', 'SET', 'ACCOUNT', 'NOTRACK', 'CT'],
]);

/** Whether it may end some packet, also in a chain that it leads to. */
const mayRefuse = (rule: FilterRule, table: FilterTable, seen: ReadonlySet<string> = new Set()): boolean => {
  const target = targetOf(rule);
  if (target === undefined || HARMLESS.has(target) || seen.has(target)) return false;
  const next = table.get(target);
  if (!next) return true;
  const all = new Set([...seen, target]);
  return next.rules.some((one) => mayRefuse(one, table, all));
};

/** A chain that refuses what nobody has accepted, and so what belongs to the overlay. */
export interface Refusal {
  readonly chain: OpenedChain;
  /** Its policy, or the first rule that does so. */
  readonly why: string;
}

export interface Changes {
  readonly removals: readonly { readonly chain: OpenedChain; readonly rule: FilterRule }[];
  /** Of OPENING. Positions count from 1, without the removed rules. */
  readonly insertions: readonly { readonly chain: OpenedChain; readonly position: number }[];
}

export interface Openings extends Changes {
  /** Of the firewall as it is without us. */
  readonly refusals: readonly Refusal[];
  /** Of these, what is in force with these changes, too. */
  readonly blocked: readonly Refusal[];
}

const rulesOf = (table: FilterTable, chain: OpenedChain): readonly FilterRule[] => table.get(chain)?.rules ?? [];

const othersOf = (table: FilterTable, chain: OpenedChain): readonly FilterRule[] =>
  rulesOf(table, chain).filter((rule) => !isOurs(rule));

const removalsOf = (table: FilterTable, chain: OpenedChain): Changes['removals'] =>
  rulesOf(table, chain)
    .filter(isOurs)
    .map((rule) => ({ chain, rule }));

/** Index of the first of others' rules that refuses what nobody has accepted; their number: the policy does. Undefined: nothing does. */
const refusedAt = (table: FilterTable, chain: OpenedChain): number | undefined => {
  const others = othersOf(table, chain);
  const at = others.findIndex((rule) => refusesAll(rule, { table, chain, isBase: true, seen: new Set() }));
  if (at >= 0) return at;
  return table.get(chain)?.policy === 'DROP' ? others.length : undefined;
};

const describe = (chain: OpenedChain, rule: FilterRule | undefined): Refusal => ({
  chain,
  why: rule ? `rule "${rule.join(' ')}"` : 'policy DROP',
});

/** It stands once, from the first place that will do to the last; where there does not matter. */
const isInPlace = (rules: readonly FilterRule[], first: number, last: number): boolean => {
  const own = rules.flatMap((rule, index) => (isOurs(rule) ? [index] : []));
  return own.length === 1 && isOpening(rules[own[0]!]!) && own[0]! >= first && own[0]! <= last;
};

/**
 * @param refused index of the first of others' rules that refuses what nobody has accepted
 * @param isStrict our rule stands behind all that refuses packets for what they are
 */
const openChain = (table: FilterTable, chain: OpenedChain, refused: number, isStrict = true): Openings => {
  const [rules, others] = [rulesOf(table, chain), othersOf(table, chain)];
  const refusal = describe(chain, others[refused]);
  const behind = others.findLastIndex(isPolicy) + 1;
  const at = Math.max(behind, refused);
  const denied = others.slice(0, at).findLastIndex((rule) => mayRefuse(rule, table)) + 1;
  const stands = isInPlace(rules, isStrict ? Math.max(behind, denied) : behind, at);
  return {
    refusals: [refusal],
    blocked: behind > refused ? [{ chain, why: `${refusal.why} stands before rules of a network policy` }] : [],
    removals: stands ? [] : removalsOf(table, chain),
    insertions: stands ? [] : [{ chain, position: at + 1 }],
  };
};

/**
 * @param isFormer of a chain that refuses nothing: whether it did a moment ago, and is opened as if its policy did still; where our rule
 *   stands is looked at when it refuses again
 */
export const planOpenings = (table: FilterTable, isFormer: (chain: OpenedChain) => boolean = () => false): Openings => {
  const chains = OPENED_CHAINS.map((chain): Openings => {
    const refused = refusedAt(table, chain);
    if (refused !== undefined) return openChain(table, chain, refused);
    if (table.has(chain) && isFormer(chain))
      return { ...openChain(table, chain, othersOf(table, chain).length, false), refusals: [], blocked: [] };
    return { refusals: [], blocked: [], removals: removalsOf(table, chain), insertions: [] };
  });
  return {
    refusals: chains.flatMap(({ refusals }) => refusals),
    blocked: chains.flatMap(({ blocked }) => blocked),
    removals: chains.flatMap(({ removals }) => removals),
    insertions: chains.flatMap(({ insertions }) => insertions),
  };
};

/** Without any rule of ours. */
export const planClosings = (table: FilterTable): Openings => {
  const { refusals } = planOpenings(table);
  const removals = OPENED_CHAINS.flatMap((chain) => removalsOf(table, chain));
  return { refusals, blocked: refusals, removals, insertions: [] };
};
