import { type GatewayPool } from '@unbounded/crds';

import { type NodeFacts } from './node-facts.ts';

/** Why a node that a pool selects is not its gateway (yet). */
export type Ineligible = 'NoPublicKey' | 'NoExternalIP' | 'InOtherPool';

export const isExternal = ({ spec }: GatewayPool): boolean => spec.type !== 'Internal';

export const isSelected = ({ spec }: GatewayPool, { labels }: Pick<NodeFacts, 'labels'>): boolean =>
  Object.entries(spec.nodeSelector).every(([name, value]) => labels[name] === value);

/** Undefined when the node can be a gateway of this pool. */
export const whyIneligible = (pool: GatewayPool, node: NodeFacts): Ineligible | undefined => {
  if (node.wireGuardPublicKey === undefined) return 'NoPublicKey';
  if (isExternal(pool) && node.externalIPs.length === 0) return 'NoExternalIP';
  return undefined;
};

/** The pool whose gateway the node is: of those that select it and can take it, the one whose name sorts first. */
export const poolOf = (node: NodeFacts, pools: readonly GatewayPool[]): GatewayPool | undefined => {
  let best: GatewayPool | undefined;
  for (const pool of pools) {
    if (best && best.metadata.name <= pool.metadata.name) continue;
    if (isSelected(pool, node) && whyIneligible(pool, node) === undefined) best = pool;
  }
  return best;
};
