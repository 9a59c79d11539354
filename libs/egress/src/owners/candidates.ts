import { matchesLabels } from '@unbounded/label-selector';
import type { RuleAddress } from '../addresses/rule-address.ts';
import type { Pool } from '../pools/pool.ts';
import type { EgressNode } from '../snapshot.ts';
import { type AttachedSubnet, nodesAttachedTo } from './subnets.ts';

export interface Candidates {
  /** Nodes that the pool selects; all for an address outside of every pool. */
  readonly selected: readonly EgressNode[];
  /** Of these, the ones that can answer for the address. */
  readonly attached: readonly EgressNode[];
  /** Of these, the ones that are alive and not fenced. */
  readonly live: readonly EgressNode[];
}

/** The nodes that pools select: whoever asks often asks one of these, so that selectors are compared once for each pool. */
export const createNodeSelection = (
  nodes: readonly EgressNode[],
): ((pool: Pool | undefined) => readonly EgressNode[]) => {
  const selectedBy = new Map<Pool | undefined, readonly EgressNode[]>();
  return (pool) => {
    const known = selectedBy.get(pool);
    if (known) return known;
    const selected = nodes.filter(({ labels }) => matchesLabels(pool?.nodeSelector, labels));
    selectedBy.set(pool, selected);
    return selected;
  };
};

/** Which nodes can own an address. */
export const createCandidates =
  (
    select: ReturnType<typeof createNodeSelection>,
    subnets: readonly AttachedSubnet[],
  ): ((address: RuleAddress) => Candidates) =>
  ({ address, pool }) => {
    const selected = select(pool);
    const near = nodesAttachedTo(subnets, address, pool?.interface);
    const attached = pool?.announce === 'None' ? selected : selected.filter(({ name }) => near.has(name));
    return { selected, attached, live: attached.filter(({ isAlive, isFenced }) => isAlive && !isFenced) };
  };
