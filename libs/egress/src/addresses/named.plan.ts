import { type Address, formatAddress } from '@unbounded/ip';

import type { Pool } from '../pools/pool.ts';
import type { EgressProblem } from '../problem.ts';
import type { Rule } from '../rules/rule.ts';
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
}

export interface RuleAddresses {
  readonly addresses: readonly RuleAddress[];
  readonly problems: readonly EgressProblem[];
}

/** Who claims an address that the rule does not have yet. */
const claimOf = (rule: Rule, address: Address, pool: Pool | undefined, context: NamedContext) =>
  context.isAssigned(rule, formatAddress(address)) ? undefined : context.usage.claimOf(address, pool);

/** Why the rule cannot have the address: a reason and a remedy. */
const refusalOf = (
  rule: Rule,
  address: Address,
  pool: Pool | undefined,
  context: NamedContext,
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
    const pool = context.pools.find(({ held }) => held.has(address));
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
