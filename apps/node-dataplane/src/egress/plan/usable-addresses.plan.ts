import type { Problem } from '@unbounded/topology';
import { FAMILIES, familyOf } from '../../kernel/nft-family.ts';
import type { EgressPlan } from './egress-plan.ts';
import { MAX_LIVE } from './tables.plan.ts';

/** Of the egress addresses that were given to the node, those that it can have. The plan has no others: what uses them otherwise is left alone. */

type Addresses = EgressPlan['addresses'];

const inUse = (address: string, device: string): Problem => ({
  reason: 'EgressAddressInUse',
  message: `egress address ${address}: device ${device} of this node has it by another one's doing: nothing leaves with it here; take it off the device, or out of the pool or the rule`,
});

const NAMED = 3;
const FAMILY_NAME = { ip: 'IPv4', ip6: 'IPv6' } as const;

const tooMany = (family: 'ip' | 'ip6', limit: number, surplus: Addresses): Problem => {
  const names = surplus.slice(0, NAMED).map(({ address }) => address);
  const others = surplus.length > NAMED ? ` and ${surplus.length - NAMED} more` : '';
  return {
    reason: 'EgressAddressesTooMany',
    message: `egress addresses: a node can have ${limit} of ${FAMILY_NAME[family]}, and this one was given ${limit + surplus.length}: nothing leaves with ${names.join(', ')}${others}; let the pool's nodeSelector hold more nodes`,
  };
};

export interface UsableParts {
  /** That the node has by another one's doing, and the device of each. */
  readonly foreign: ReadonlyMap<string, string>;
  /** That the node has: of too many these stay. */
  readonly had: ReadonlySet<string>;
  readonly limit?: number;
}

export const usableAddresses = (
  given: Addresses,
  { foreign, had, limit = MAX_LIVE }: UsableParts,
): { readonly addresses: Addresses; readonly problems: readonly Problem[] } => {
  const problems = [...foreign].map(([address, device]) => inUse(address, device));
  const own = given.filter(({ address }) => !foreign.has(address));
  const beyond = new Set<Addresses[number]>();
  for (const family of FAMILIES) {
    const all = own.filter(({ address }) => familyOf(address) === family);
    if (all.length <= limit) continue;
    const rank = ({ address }: Addresses[number]): number => (had.has(address) ? 0 : 1);
    const surplus = all.toSorted((a, b) => rank(a) - rank(b)).slice(limit);
    for (const one of surplus) beyond.add(one);
    problems.push(tooMany(family, limit, surplus));
  }
  return { addresses: own.filter((one) => !beyond.has(one)), problems };
};
