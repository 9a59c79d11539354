import { formatAddress, hostPrefix, type Prefix, tryParseAddress } from '@unbounded/ip';

import type { Pool } from '../pools/pool.ts';
import type { Rule } from '../rules/rule.ts';
import { matchesLabels } from '../selector.ts';
import type { EgressSnapshot } from '../snapshot.ts';
import { planAllocations } from './allocate.plan.ts';
import { planKeptAddresses } from './kept.plan.ts';
import { planNamedAddresses, type RuleAddresses } from './named.plan.ts';
import { usageOf } from './usage.ts';

const hostPrefixes = (texts: Iterable<string>): Prefix[] =>
  [...texts].flatMap((text) => {
    const address = tryParseAddress(text);
    return address ? [hostPrefix(address)] : [];
  });

const createEligibility = ({ namespaces }: EgressSnapshot) => {
  const labelsOf = new Map(namespaces.map(({ name, labels }) => [name, labels]));
  // Rules of the cluster are made by those who make pools.
  return ({ object }: Rule, { namespaceSelector }: Pool): boolean =>
    object.namespace === undefined || matchesLabels(namespaceSelector, labelsOf.get(object.namespace) ?? {});
};

/**
 * The addresses of each rule, by its key. What is allocated comes before what is named, and that before what is to be
 * allocated; an address is allocated to one rule only, and never while a node may still hold it for another.
 * @param subnets networks that nodes are attached to
 */
export const planAddresses = (
  rules: readonly Rule[],
  pools: ReadonlyMap<string, Pool>,
  snapshot: EgressSnapshot,
  subnets: readonly Prefix[],
): ReadonlyMap<string, RuleAddresses> => {
  const usage = usageOf(snapshot.nodes, snapshot.cluster, subnets);
  const isEligible = createEligibility(snapshot);
  const kept = planKeptAddresses(rules, { pools, usage });
  const byKey = new Map(rules.map((rule) => [rule.key, rule]));
  const allocatedTo = new Map(
    [...kept].flatMap(([key, addresses]) =>
      addresses.map((address) => [formatAddress(address), byKey.get(key)!] as const),
    ),
  );
  const context = { usage, pools: [...pools.values()], isEligible, allocatedTo };
  const named = rules
    .filter(({ source }) => source.field !== 'pool')
    .map((rule) => [rule.key, planNamedAddresses(rule, context)] as const);
  const reserved = [
    ...usage.unallocatable,
    ...named.flatMap(([, { addresses }]) => addresses.map(({ address }) => hostPrefix(address))),
    ...hostPrefixes(snapshot.slices.flatMap(({ spec }) => (spec.owned ?? []).map(({ address }) => address))),
  ];
  return new Map([...named, ...planAllocations(rules, { pools, kept, isEligible, reserved })]);
};
