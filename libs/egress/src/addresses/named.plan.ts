import { type Address, formatAddress } from '@unbounded/ip';

import { firstDifference } from '../order.ts';
import type { Pool } from '../pools/pool.ts';
import type { EgressProblem } from '../problem.ts';
import type { Rule } from '../rules/rule.ts';
import { compareAge } from './kept.plan.ts';
import type { RuleAddress } from './rule-address.ts';
import { type AddressUsage, claimRemedy, usageRemedy } from './usage.ts';

export interface NamedContext {
  readonly usage: AddressUsage;
  readonly pools: readonly Pool[];
  /** Whether StaticEgressIPs of a namespace may use the pool. */
  readonly isEligible: (rule: Rule, pool: Pool) => boolean;
  /** The rule that an address is allocated to, by the address. */
  readonly allocatedTo: ReadonlyMap<string, Rule>;
  /** The rule has the address: by its status, or a node has it. */
  readonly isAssigned: (rule: Rule, address: string) => boolean;
  readonly holders: AddressHolders;
}

export interface RuleAddresses {
  readonly addresses: readonly RuleAddress[];
  readonly problems: readonly EgressProblem[];
}

const poolOf = (address: Address, { pools }: Pick<NamedContext, 'pools'>): Pool | undefined =>
  pools.find(({ held }) => held.has(address));

/** Who claims an address that the rule does not have yet. */
const claimOf = (rule: Rule, address: Address, pool: Pool | undefined, context: Omit<NamedContext, 'holders'>) =>
  context.isAssigned(rule, formatAddress(address)) ? undefined : context.usage.claimOf(address, pool);

/** Why the rule cannot have the address, whoever else names it: a reason and a remedy. */
const ownRefusal = (
  rule: Rule,
  address: Address,
  pool: Pool | undefined,
  context: Omit<NamedContext, 'holders'>,
): [string, string] | undefined => {
  const usage = context.usage.fixed(address) ?? claimOf(rule, address, pool, context)?.usage;
  if (usage) return [usage, usageRemedy[usage]];
  if (pool && !context.isEligible(rule, pool)) {
    return [
      'IneligibleNamespace',
      `belongs to EgressIPPool ${pool.name}, whose namespaceSelector does not select namespace ${rule.object.namespace}: take another address, or label the namespace`,
    ];
  }
  const holder = context.allocatedTo.get(formatAddress(address));
  if (holder && holder.key !== rule.key) {
    return ['AddressInUse', `is allocated to ${holder.object.key} by a pool: take another address`];
  }
  return undefined;
};

/** Those who may share an address: the rules of a namespace, or those of the cluster. */
const sharersOf = ({ object }: Rule): string | undefined => object.namespace;
const isOfCluster = ({ object }: Rule): boolean => object.namespace === undefined;

/**
 * The rule for which an address is, of those that name it: one that has it, then one of the cluster, then that of the oldest object. All of
 * its namespace may share it, and nobody else: a partner that lets it in lets one tenant in.
 */
export type AddressHolders = ReadonlyMap<string, Rule>;

export const planHolders = (rules: readonly Rule[], context: Omit<NamedContext, 'holders'>): AddressHolders => {
  const holders = new Map<string, Rule>();
  const hasIt = ({ object }: Rule, text: string): boolean => object.assigned.some(({ address }) => address === text);
  const isBefore = (a: Rule, b: Rule, text: string): boolean =>
    firstDifference(
      Number(hasIt(b, text)) - Number(hasIt(a, text)),
      Number(isOfCluster(b)) - Number(isOfCluster(a)),
      compareAge(a, b),
    ) < 0;
  for (const rule of rules) {
    for (const address of rule.source.field === 'pool' ? [] : rule.source.addresses) {
      const text = formatAddress(address);
      const holder = holders.get(text);
      if (holder && !isBefore(rule, holder, text)) continue;
      if (!ownRefusal(rule, address, poolOf(address, context), context)) holders.set(text, rule);
    }
  }
  return holders;
};

const sharingRemedy = (rule: Rule, holder: Rule): string => {
  if (isOfCluster(rule))
    return 'which is of one namespace: take another address, or let that rule name another one first';
  const whose = isOfCluster(holder) ? 'which rules of namespaces cannot share' : 'which is of another namespace';
  return `${whose}: take another address, or one ClusterStaticEgressIP for several namespaces`;
};

const refusalOf = (
  rule: Rule,
  address: Address,
  pool: Pool | undefined,
  context: NamedContext,
): [string, string] | undefined => {
  const own = ownRefusal(rule, address, pool, context);
  const holder = context.holders.get(formatAddress(address));
  if (own || !holder || sharersOf(holder) === sharersOf(rule)) return own;
  return ['AddressInUse', `is the address of ${holder.object.key}, ${sharingRemedy(rule, holder)}`];
};

/** A cidr whose family no address has: what the pods send there is dropped. */
const familyProblems = (rule: Rule, addresses: readonly Address[], given: string): EgressProblem[] =>
  rule.cidr === undefined || addresses.length === 0 || addresses.some(({ family }) => family === rule.families[0])
    ? []
    : [
        {
          condition: 'Accepted',
          reason: 'FamilyMismatch',
          field: `${rule.path}.${rule.source.field}`,
          value: given,
          remedy: `must hold an IPv${rule.families[0]} address, the family of cidr, or nothing leaves`,
        },
      ];

/** The addresses that a rule names itself, without those that it cannot have. */
export const planNamedAddresses = (rule: Rule, context: NamedContext): RuleAddresses => {
  const { source } = rule;
  if (source.field === 'pool') return { addresses: [], problems: [] };
  const problems = familyProblems(rule, source.addresses, source.addresses.map(formatAddress).join());
  const addresses = source.addresses.flatMap((address, index): readonly RuleAddress[] => {
    const text = formatAddress(address);
    const pool = poolOf(address, context);
    const refusal = refusalOf(rule, address, pool, context);
    const field = `${rule.path}.${source.field}${source.field === 'egressips' ? `[${index}]` : ''}`;
    const tell = (reason: string, remedy: string): void =>
      void problems.push({ condition: 'Accepted', reason, field, value: text, remedy });
    if (refusal) {
      tell(...refusal);
      return [];
    }
    const claim = context.usage.claimOf(address, pool);
    if (claim) tell('AddressClaimed', claimRemedy(claim));
    return [{ address, text, pool, allocatedFrom: undefined, isUsable: true }];
  });
  return { addresses, problems };
};
