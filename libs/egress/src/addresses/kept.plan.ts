import type { AssignedAddress } from '@unbounded/crds';
import { type Address, type Family, formatAddress, tryParseAddress } from '@unbounded/ip';

import { compareTexts, firstDifference, groupBy } from '../order.ts';
import type { Pool } from '../pools/pool.ts';
import type { Rule } from '../rules/rule.ts';
import type { AddressUsage } from './usage.ts';

/** Addresses that rules keep from the last plan, by the key of the rule, in the order in which they were given. */
export type KeptAddresses = ReadonlyMap<string, readonly Address[]>;

interface KeptContext {
  readonly pools: ReadonlyMap<string, Pool>;
  readonly usage: AddressUsage;
}

/** Older objects first: of two that claim an address it keeps it. */
export const compareAge = (a: Rule, b: Rule): number =>
  firstDifference(
    compareTexts(a.object.createdAt, b.object.createdAt),
    compareTexts(a.object.key, b.object.key),
    a.index - b.index,
  );

/** Takes addresses up to the rule's number of each family. */
const createTaker = (taken: Set<string>, { pools, usage }: KeptContext) => {
  const counts = new Map<string, number>();
  return (rule: Rule, { address: text, pool: from }: AssignedAddress): Address | undefined => {
    const address = tryParseAddress(text);
    if (rule.source.field !== 'pool' || from !== rule.source.pool || !address) return undefined;
    const pool = pools.get(from);
    const isLost = (pool && !pool.given.has(address)) || usage.fixed(address) !== undefined;
    const counter = `${rule.key} ${address.family}`;
    const count = counts.get(counter) ?? 0;
    const canonical = formatAddress(address);
    const isWanted = rule.families.includes(address.family) && count < rule.source.count;
    if (isLost || !isWanted || taken.has(canonical)) return undefined;
    taken.add(canonical);
    counts.set(counter, count + 1);
    return address;
  };
};

/**
 * What is allocated stays: with the rule of the same selection and destination, wherever it stands now, else with the one at
 * the same place. It ends when the rule names another pool or fewer addresses, when the pool does not hold the address
 * any more (an exclusion alone ends nothing), and when administrators give it to pods or Services. Nobody else's claim ends it, and a
 * pool that is missing keeps them too.
 */
export const planKeptAddresses = (rules: readonly Rule[], context: KeptContext): KeptAddresses => {
  const take = createTaker(new Set(), context);
  const kept = new Map<string, Address[]>();
  const keep = (rule: Rule, entry: AssignedAddress): boolean => {
    const address = take(rule, entry);
    if (address) kept.set(rule.key, [...(kept.get(rule.key) ?? []), address]);
    return address !== undefined;
  };
  const ofPools = rules.filter(({ source }) => source.field === 'pool').toSorted(compareAge);
  for (const own of groupBy(ofPools, ({ object }) => object.key).values()) {
    const rest = own[0]!.object.assigned.filter(
      (entry) => !own.some((rule) => rule.selectionPrint === entry.selection && keep(rule, entry)),
    );
    const prints = new Set(own.map(({ selectionPrint }) => selectionPrint));
    for (const entry of rest) {
      // Of a rule that is still there these are too many; they are not another one's.
      const rule = prints.has(entry.selection) ? undefined : own.find(({ index }) => index === entry.rule);
      if (rule) keep(rule, entry);
    }
  }
  return kept;
};

/** Families of which the pool has addresses. */
export const familiesOf = (pool: Pool): ReadonlySet<Family> =>
  new Set(pool.given.toPrefixes().map(({ family }) => family));
