import { annotations } from '@unbounded/crds';
import { inParallel, type ObjectWrites } from '@unbounded/controller-runtime';
import { isConflict, isNotFound, type Node, type ResourceClient } from '@unbounded/kube';

import type { LocatorPlan } from './locators.plan.ts';

/** As of pod CIDRs: the API server's latency is what limits a large batch. */
const PARALLEL_PATCHES = 8;
const MAX_CONFLICTS = 5;
const WHAT = `annotation ${annotations.l2Locator}`;

export interface ApplyLocatorsOptions {
  readonly client: ResourceClient<Node>;
  readonly writes: ObjectWrites;
  /** The nodes as they were when the plan was made. */
  readonly nodes: readonly Node[];
  readonly signal: AbortSignal;
  /** Called with what a node has now; undefined: none. */
  readonly onWritten: (node: Node, locator: string | undefined) => void;
}

const statedLocator = ({ metadata }: Node): string | undefined => metadata.annotations?.[annotations.l2Locator];

/** True when the node has the locator; false when it is gone or has got another meanwhile. */
const patchNode = async (
  first: Node,
  locator: string | undefined,
  { client, signal }: ApplyLocatorsOptions,
): Promise<boolean> => {
  let node = first;
  for (let conflicts = 0; ; conflicts++) {
    const { name, uid, resourceVersion } = node.metadata;
    // The version makes sure that the node still is as the plan saw it; the uid, that it is no namesake.
    const patch = { metadata: { uid, resourceVersion, annotations: { [annotations.l2Locator]: locator ?? null } } };
    try {
      await client.mergePatch(name, patch, { signal });
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      if (!isConflict(error) || conflicts >= MAX_CONFLICTS) throw error;
    }
    try {
      node = await client.get(name, { signal }); // a heartbeat was faster, or someone wrote the annotation
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
    if (node.metadata.uid !== first.metadata.uid || statedLocator(node) !== statedLocator(first)) return false;
  }
};

/** Writes the locators that nodes do not state yet, each on its own. @throws AggregateError when the API server cannot be reached */
export const applyLocators = ({ locators }: LocatorPlan, options: ApplyLocatorsOptions): Promise<void> => {
  const changed = options.nodes.filter(
    (node) => locators.has(node.metadata.name) && locators.get(node.metadata.name) !== statedLocator(node),
  );
  return inParallel(changed, PARALLEL_PATCHES, (node) =>
    options.writes.attempt(node, WHAT, async () => {
      const locator = locators.get(node.metadata.name);
      if (await patchNode(node, locator, options)) options.onWritten(node, locator);
    }),
  );
};
