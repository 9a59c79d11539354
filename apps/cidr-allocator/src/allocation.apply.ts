import { inParallel, type ObjectWrites } from '@unbounded/controller-runtime';
import type { Node, ResourceClient } from '@unbounded/kube';
import { nodeFacts } from '@unbounded/membership';

import type { Allocation } from './allocation.plan.ts';
import { PARALLEL_PATCHES, patchNode } from './patch-node.ts';

export interface ApplyOptions {
  readonly client: ResourceClient<Node>;
  readonly writes: ObjectWrites;
  /** The nodes as they were when the plan was made. */
  readonly nodes: ReadonlyMap<string, Node>;
  readonly signal: AbortSignal;
  readonly onAllocated: (node: Node, allocation: Allocation) => void;
}

const WHAT = 'spec.podCIDRs';

type Selection = Pick<ApplyOptions, 'nodes' | 'writes'>;

/** Those whose write is in this state. */
const select = (
  allocations: readonly Allocation[],
  nodes: Selection['nodes'],
  isWanted: (node: Node) => boolean,
): readonly Allocation[] =>
  allocations.filter(({ node: name }) => {
    const node = nodes.get(name);
    return node !== undefined && isWanted(node);
  });

/** Those of which the Node does not rest after a write that failed. */
export const dueAllocations = (allocations: readonly Allocation[], { nodes, writes }: Selection) =>
  select(allocations, nodes, (node) => !writes.isResting(node, WHAT));

/** Those that were refused when they were last tried. */
export const refusedAllocations = (allocations: readonly Allocation[], { nodes, writes }: Selection) =>
  select(allocations, nodes, (node) => writes.isRefused(node, WHAT));

/** Writes the blocks to the nodes, each on its own. @throws AggregateError when the API server cannot be reached */
export const applyAllocations = (allocations: readonly Allocation[], options: ApplyOptions): Promise<void> =>
  inParallel(allocations, PARALLEL_PATCHES, async (allocation) => {
    const node = options.nodes.get(allocation.node);
    if (!node) return;
    await options.writes.attempt(node, WHAT, async () => {
      const { podCIDRs } = allocation;
      const change = { spec: { podCIDR: podCIDRs[0], podCIDRs } };
      const isAsSeen = (now: Node): boolean => !nodeFacts(now).hasPodCIDRs;
      if (await patchNode(node, { ...options, change, isAsSeen })) options.onAllocated(node, allocation);
    });
  });
