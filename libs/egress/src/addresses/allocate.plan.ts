import {
  type Address,
  AddressSet,
  addressBits,
  type Family,
  formatAddress,
  hostPrefix,
  type Prefix,
} from '@unbounded/ip';

import type { Pool } from '../pools/pool.ts';
import type { EgressProblem } from '../problem.ts';
import type { Rule } from '../rules/rule.ts';
import { compareAge, familiesOf, type KeptAddresses } from './kept.plan.ts';
import type { RuleAddresses } from './named.plan.ts';
import { type AddressUsage, claimRemedy } from './usage.ts';

interface AllocationContext {
  readonly pools: ReadonlyMap<string, Pool>;
  readonly kept: KeptAddresses;
  readonly isEligible: (rule: Rule, pool: Pool) => boolean;
  readonly usage: AddressUsage;
  /** Addresses that are not given: named by rules, or still held by a node. */
  readonly reserved: readonly Prefix[];
}

/** The lowest free addresses of a family, `count` at most. */
const takeFree = (pool: Pool, taken: AddressSet, family: Family, count: number): Address[] => {
  const blocks = pool.allocatable.toPrefixes().filter((block) => block.family === family);
  const found: Address[] = [];
  let occupied = taken;
  for (const block of blocks) {
    while (found.length < count) {
      const free = occupied.firstFreeBlock(block, addressBits(family));
      if (!free) break;
      occupied = occupied.add(free);
      found.push({ family, value: free.address });
    }
  }
  return found;
};

/** What the rule keeps although others claim it. */
const claimProblems = (
  rule: Rule,
  pool: Pool,
  addresses: readonly Address[],
  usage: AddressUsage,
): readonly EgressProblem[] =>
  addresses.flatMap((address) => {
    const claim = usage.claimOf(address, pool);
    if (!claim) return [];
    const field = `${rule.path}.pool`;
    const remedy = claimRemedy(claim);
    return [{ condition: 'Accepted', reason: 'AddressClaimed', field, value: formatAddress(address), remedy }];
  });

const problemOf = (
  rule: Rule,
  condition: EgressProblem['condition'],
  reason: string,
  remedy: string,
): EgressProblem => ({
  condition,
  reason,
  field: `${rule.path}.pool`,
  value: rule.source.field === 'pool' ? rule.source.pool : '',
  remedy,
});

/** Why a rule gets nothing from its pool; what it has it keeps, and does not use. */
const refusalOf = (
  rule: Rule,
  pool: Pool | undefined,
  isEligible: AllocationContext['isEligible'],
): EgressProblem | undefined => {
  if (!pool)
    return problemOf(rule, 'Accepted', 'PoolMissing', 'no EgressIPPool has this name: create it, or name another one');
  if (!isEligible(rule, pool)) {
    const remedy = `its namespaceSelector does not select namespace ${rule.object.namespace}: name another pool, or label the namespace`;
    return problemOf(rule, 'Accepted', 'IneligibleNamespace', remedy);
  }
  const families = familiesOf(pool);
  if (rule.families.some((family) => families.has(family))) return undefined;
  const remedy = `has no IPv${rule.families.join(' or IPv')} addresses, which cidr needs: add a block of that family`;
  return problemOf(rule, 'Accepted', 'FamilyMismatch', remedy);
};

/** Families that the rule and its pool have in common, with the number of addresses that are missing. */
const missingOf = (rule: Rule, pool: Pool, kept: readonly Address[]): { family: Family; count: number }[] => {
  const wanted = rule.source.field === 'pool' ? rule.source.count : 0;
  const families = familiesOf(pool);
  return rule.families
    .filter((family) => families.has(family))
    .map((family) => ({ family, count: wanted - kept.filter((address) => address.family === family).length }))
    .filter(({ count }) => count > 0);
};

/**
 * Addresses of pools: those that are kept, and the lowest free ones for what is missing, older objects first. The state is
 * the status of the rules, so a new leader needs no bookkeeping; pods do not matter, so it survives their absence.
 */
export const planAllocations = (
  rules: readonly Rule[],
  context: AllocationContext,
): ReadonlyMap<string, RuleAddresses> => {
  const { pools, kept, isEligible } = context;
  const isOfPool = ({ family, address }: Prefix): boolean =>
    [...pools.values()].some(({ given }) => given.has({ family, value: address }));
  let taken = AddressSet.of(
    [
      ...context.reserved,
      ...[...kept.values()].flat().map(hostPrefix),
      ...[...pools.values()].flatMap(({ nextHops }) => nextHops.map(hostPrefix)),
    ].filter(isOfPool),
  );
  const plans = new Map<string, RuleAddresses>();
  for (const rule of rules.filter(({ source }) => source.field === 'pool').toSorted(compareAge)) {
    const name = rule.source.field === 'pool' ? rule.source.pool : '';
    const pool = pools.get(name);
    const refusal = refusalOf(rule, pool, isEligible);
    const addresses = [...(kept.get(rule.key) ?? [])];
    const problems = refusal || !pool ? [refusal!] : [...claimProblems(rule, pool, addresses, context.usage)];
    for (const { family, count } of pool && !refusal ? missingOf(rule, pool, addresses) : []) {
      const found = takeFree(pool!, taken.union(context.usage.claimedIn(pool!)), family, count);
      taken = taken.union(AddressSet.of(found.map(hostPrefix)));
      addresses.push(...found);
      const remedy = `has ${found.length} of ${count} further IPv${family} addresses free: add a block to it, or lower addresses`;
      if (found.length < count) problems.push(problemOf(rule, 'AddressesAssigned', 'PoolExhausted', remedy));
    }
    plans.set(rule.key, {
      addresses: addresses.map((address) => ({
        address,
        text: formatAddress(address),
        pool,
        allocatedFrom: name,
        isUsable: refusal === undefined,
      })),
      problems,
    });
  }
  return plans;
};
