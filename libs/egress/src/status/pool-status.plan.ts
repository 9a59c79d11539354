import { AddressSet, addressBits, hostPrefix } from '@unbounded/ip';

import type { RuleAddresses } from '../addresses/named.plan.ts';
import type { Pool } from '../pools/pool.ts';
import { poolConditions, type Statement } from './conditions.plan.ts';

/** The status that an EgressIPPool is to have. */
export interface PoolStatus {
  readonly assigned: number;
  readonly free: number;
  readonly conditions: readonly Statement[];
}

/** As far as addresses are counted. */
const MOST_FREE = 1_000_000;

const countOf = (addresses: AddressSet): number =>
  addresses
    .toPrefixes()
    .map(({ family, length }) => addressBits(family) - length)
    .reduce((sum, bits) => Math.min(MOST_FREE, sum + 2 ** bits), 0);

/** By the name of the pool. An address that a rule names counts for the pool that holds it. */
export const planPoolStatuses = (
  pools: ReadonlyMap<string, Pool>,
  addresses: ReadonlyMap<string, RuleAddresses>,
): ReadonlyMap<string, PoolStatus> => {
  const all = [...addresses.values()].flatMap((own) => own.addresses);
  const used = AddressSet.of(all.map(({ address }) => hostPrefix(address)));
  return new Map(
    [...pools.values()].map((pool) => {
      const assigned = new Set(all.filter(({ pool: own }) => own?.name === pool.name).map(({ text }) => text)).size;
      return [
        pool.name,
        { assigned, free: countOf(pool.allocatable.subtract(used)), conditions: poolConditions(pool.problems) },
      ];
    }),
  );
};
