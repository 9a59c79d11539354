import { FIREWALL_RULE_COMMENT, PASSING_MARK } from '@unbounded/config/ownership';
import { commentOf, type FilterRule, type FilterTable, targetOf } from './iptables-save.codec.ts';

/**
 * What a filter table of iptables needs so that it lets the overlay pass: our rule in FORWARD and in INPUT, before the first that may
 * refuse a packet. It takes only packets with our mark, which our own table sets; all others meet the chain as it was. Rules of network
 * policies stay before it: what they refuse is refused.
 */

export const OPENED_CHAINS = ['FORWARD', 'INPUT'] as const;
type OpenedChain = (typeof OPENED_CHAINS)[number];

const MARK = `0x${PASSING_MARK.toString(16)}`;

/** As iptables-save prints it. */
export const OPENING: FilterRule = [
  ...['-m', 'mark', '--mark', `${MARK}/${MARK}`],
  ...['-m', 'comment', '--comment', FIREWALL_RULE_COMMENT],
  ...['-j', 'ACCEPT'],
];

/** Chains of those that enforce NetworkPolicy in iptables: Calico, kube-router, Weave, Azure, Antrea. */
const POLICY_CHAIN = /^(?:cali-|KUBE-ROUTER-|KUBE-NWPLCY-|KUBE-POD-FW-|WEAVE-NPC|AZURE-NPM|ANTREA-)/;
/** Of kube-proxy and kubelet: they drop what belongs to no Service, and packets to 127.0.0.0/8 from elsewhere. */
const KUBERNETES_CHAIN = /^KUBE-/;
const HARMLESS_TARGETS = new Set(['ACCEPT', 'RETURN', 'LOG', 'NFLOG', 'MARK', 'CONNMARK', 'SET', 'TCPMSS']);

const isOurs = (rule: FilterRule): boolean => commentOf(rule) === FIREWALL_RULE_COMMENT;
const isOpening = (rule: FilterRule): boolean =>
  rule.length === OPENING.length && rule.every((word, index) => word === OPENING[index]);
const isPolicy = (rule: FilterRule): boolean => POLICY_CHAIN.test(targetOf(rule) ?? '');

/** Whether a packet may come to its end by the rule, also in chains that it leads to. A target that is not known may do anything. */
const mayRefuse = (table: FilterTable, rule: FilterRule, before: ReadonlySet<string> = new Set()): boolean => {
  const target = targetOf(rule);
  if (target === undefined || HARMLESS_TARGETS.has(target) || before.has(target)) return false;
  if (POLICY_CHAIN.test(target) || KUBERNETES_CHAIN.test(target)) return false;
  const chain = table.get(target);
  if (!chain) return true;
  const seen = new Set([...before, target]);
  return chain.rules.some((one) => mayRefuse(table, one, seen));
};

/** A chain that may drop what belongs to the overlay. */
export interface Refusal {
  readonly chain: OpenedChain;
  /** Its policy, or the first rule that may refuse. */
  readonly why: string;
}

const findRefusal = (table: FilterTable, chain: OpenedChain): Refusal | undefined => {
  const { policy, rules } = table.get(chain) ?? { rules: [] };
  const rule = rules.find((one) => mayRefuse(table, one));
  if (rule) return { chain, why: `rule "${rule.join(' ')}"` };
  return policy === 'DROP' ? { chain, why: 'policy DROP' } : undefined;
};

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

const removalsOf = (table: FilterTable, chain: OpenedChain): Changes['removals'] =>
  (table.get(chain)?.rules ?? []).filter(isOurs).map((rule) => ({ chain, rule }));

/** It stands once, behind policies and before refusals, wherever else others have moved it. */
const isInPlace = (table: FilterTable, rules: readonly FilterRule[], at: number): boolean => {
  const [first, ...further] = rules.flatMap((rule, index) => (isOurs(rule) ? [index] : []));
  if (first === undefined || further.length > 0 || !isOpening(rules[first]!)) return false;
  return first === at || (first > at && !rules.slice(at, first).some((rule) => mayRefuse(table, rule)));
};

const openChain = (table: FilterTable, refusal: Refusal): Openings => {
  const { chain } = refusal;
  const { rules } = table.get(chain)!;
  const others = rules.filter((rule) => !isOurs(rule));
  const at = others.findLastIndex(isPolicy) + 1;
  const before = others.slice(0, at).find((rule) => mayRefuse(table, rule));
  return {
    refusals: [refusal],
    blocked: before ? [{ chain, why: `rule "${before.join(' ')}" stands before rules of a network policy` }] : [],
    ...(isInPlace(table, rules, at)
      ? { removals: [], insertions: [] }
      : { removals: removalsOf(table, chain), insertions: [{ chain, position: at + 1 }] }),
  };
};

/** A chain that refuses nothing needs no rule of ours. */
export const planOpenings = (table: FilterTable): Openings => {
  const chains = OPENED_CHAINS.map((chain): Openings => {
    const refusal = findRefusal(table, chain);
    if (refusal) return openChain(table, refusal);
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
  const refusals = OPENED_CHAINS.flatMap((chain) => findRefusal(table, chain) ?? []);
  const removals = OPENED_CHAINS.flatMap((chain) => removalsOf(table, chain));
  return { refusals, blocked: refusals, removals, insertions: [] };
};
