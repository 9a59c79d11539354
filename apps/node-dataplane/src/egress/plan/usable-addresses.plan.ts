import type { Problem } from '@unbounded/topology';
import type { EgressPlan } from './egress-plan.ts';

/** Of the egress addresses that were given to the node, those that it can have. The plan has no others: what uses them otherwise is left alone. */

type Addresses = EgressPlan['addresses'];

const inUse = (address: string, device: string): Problem => ({
  reason: 'EgressAddressInUse',
  message: `egress address ${address}: device ${device} of this node has it by another one's doing: nothing leaves with it here; take it off the device, or out of the pool or the rule`,
});

export interface UsableParts {
  /** That the node has by another one's doing, and the device of each. */
  readonly foreign: ReadonlyMap<string, string>;
}

export const usableAddresses = (
  given: Addresses,
  { foreign }: UsableParts,
): { readonly addresses: Addresses; readonly problems: readonly Problem[] } => ({
  addresses: given.filter(({ address }) => !foreign.has(address)),
  problems: [...foreign].map(([address, device]) => inUse(address, device)),
});
