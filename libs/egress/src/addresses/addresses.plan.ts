import { matchesLabels } from '@unbounded/label-selector';
import { formatAddress, hostPrefix, type Prefix, tryParseAddress } from '@unbounded/ip';

import type { Pool } from '../pools/pool.ts';
import type { Rule } from '../rules/rule.ts';
import type { EgressSnapshot } from '../snapshot.ts';
import { planAllocations } from './allocate.plan.ts';
import { planKeptAddresses } from './kept.plan.ts';
import { planHolders, planNamedAddresses, type RuleAddresses } from './named.plan.ts';
import { type UsageContext, usageOf } from './usage.ts';

const hostPrefixes = (texts: Iterable<string>): Prefix[] =>
  [...texts].flatMap((text) => {
    const address = tryParseAddress(text);
    return address ? [hostPrefix(address)] : [];
  });

/** What slices say that nodes have, or are to release. */
const ownedAddresses = ({ slices }: EgressSnapshot): readonly string[] =>
  slices.flatMap(({ spec }) => (spec.owned ?? []).map(({ address }) => address));

const createEligibility = ({ namespaces }: EgressSnapshot) => {
  const labelsOf = new Map(namespaces.map(({ name, labels }) => [name, labels]));
  // Rules of the cluster are made by those who make pools.
  return ({ object }: Rule, { namespaceSelector }: Pool): boolean =>
    object.namespace === undefined || matchesLabels(namespaceSelector, labelsOf.get(object.namespace) ?? {});
};

/**
 * The addresses of each rule, by its key. What is allocated comes before what is named, and that before what is to be
 * allocated; an address is allocated to one rule only, and never while a node may still hold it for another.
 * @param context networks that nodes are attached to, and which nodes can own addresses
 */
export const planAddresses = (
  rules: readonly Rule[],
  pools: ReadonlyMap<string, Pool>,
  snapshot: EgressSnapshot,
  { subnets, candidatesOf }: Pick<UsageContext, 'subnets' | 'candidatesOf'>,
): ReadonlyMap<string, RuleAddresses> => {
  const nextHops = [...pools.values()].flatMap((pool) => pool.nextHops);
  const usage = usageOf({ ...snapshot, nextHops, subnets, candidatesOf });
  const isEligible = createEligibility(snapshot);
  const kept = planKeptAddresses(rules, { pools, usage });
  const byKey = new Map(rules.map((rule) => [rule.key, rule]));
  const allocatedTo = new Map(
    [...kept].flatMap(([key, addresses]) =>
      addresses.map((address) => [formatAddress(address), byKey.get(key)!] as const),
    ),
  );
  const granted = new Set(ownedAddresses(snapshot));
  const isAssigned = ({ object }: Rule, text: string): boolean =>
    granted.has(text) || object.assigned.some(({ address }) => address === text);
  const context = { usage, pools: [...pools.values()], isEligible, allocatedTo, isAssigned };
  const holders = planHolders(rules, context);
  const named = rules
    .filter(({ source }) => source.field !== 'pool')
    .map((rule) => [rule.key, planNamedAddresses(rule, { ...context, holders })] as const);
  const reserved = [
    ...named.flatMap(([, { addresses }]) => addresses.map(({ address }) => hostPrefix(address))),
    ...hostPrefixes(ownedAddresses(snapshot)),
  ];
  return new Map([...named, ...planAllocations(rules, { pools, kept, isEligible, usage, reserved })]);
};
