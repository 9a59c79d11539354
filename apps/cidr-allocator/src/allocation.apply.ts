import { inParallel, type ObjectWrites } from '@unbounded/controller-runtime';
import { isConflict, isNotFound, type Node, type ResourceClient } from '@unbounded/kube';
import { nodeFacts } from '@unbounded/membership';

import type { Allocation } from './allocation.plan.ts';

/** Patches under way at the same time: the API server's latency is what limits a large batch. */
const PARALLEL_PATCHES = 8;
const MAX_CONFLICTS = 5;

export interface ApplyOptions {
  readonly client: ResourceClient<Node>;
  readonly writes: ObjectWrites;
  /** The nodes as they were when the plan was made. */
  readonly nodes: ReadonlyMap<string, Node>;
  readonly signal: AbortSignal;
  readonly onAllocated: (node: Node, allocation: Allocation) => void;
}

/** True when the node has the blocks; false when it is gone or has got others meanwhile. */
const patchNode = async (first: Node, { podCIDRs }: Allocation, { client, signal }: ApplyOptions): Promise<boolean> => {
  let node = first;
  for (let conflicts = 0; ; conflicts++) {
    const { name, uid, resourceVersion } = node.metadata;
    // The version makes sure that the node still is as the plan saw it; the uid, that it is no namesake.
    const patch = { metadata: { uid, resourceVersion }, spec: { podCIDR: podCIDRs[0], podCIDRs } };
    try {
      await client.mergePatch(name, patch, { signal });
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      if (!isConflict(error) || conflicts >= MAX_CONFLICTS) throw error;
    }
    try {
      node = await client.get(name, { signal }); // a heartbeat was faster, or someone gave the node its blocks
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
    if (node.metadata.uid !== first.metadata.uid || nodeFacts(node).hasPodCIDRs) return false;
  }
};

/** Writes the blocks to the nodes, each on its own. @throws AggregateError when the API server cannot be reached */
export const applyAllocations = (allocations: readonly Allocation[], options: ApplyOptions): Promise<void> =>
  inParallel(allocations, PARALLEL_PATCHES, async (allocation) => {
    const node = options.nodes.get(allocation.node);
    if (!node) return;
    await options.writes.attempt(node, 'spec.podCIDRs', async () => {
      if (await patchNode(node, allocation, options)) options.onAllocated(node, allocation);
    });
  });
