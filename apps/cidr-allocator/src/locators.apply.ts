import { annotations } from '@unbounded/crds';
import { inParallel, type ObjectWrites } from '@unbounded/controller-runtime';
import type { Node, ResourceClient } from '@unbounded/kube';

import type { LocatorPlan } from './locators.plan.ts';
import { PARALLEL_PATCHES, patchNode } from './patch-node.ts';

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

/** Writes the locators that nodes do not state yet, each on its own. @throws AggregateError when the API server cannot be reached */
export const applyLocators = ({ locators }: LocatorPlan, options: ApplyLocatorsOptions): Promise<void> => {
  const changed = options.nodes.filter(
    (node) => locators.has(node.metadata.name) && locators.get(node.metadata.name) !== statedLocator(node),
  );
  return inParallel(changed, PARALLEL_PATCHES, (node) =>
    options.writes.attempt(node, WHAT, async () => {
      const locator = locators.get(node.metadata.name);
      const change = { metadata: { annotations: { [annotations.l2Locator]: locator ?? null } } };
      const isAsSeen = (now: Node): boolean => statedLocator(now) === statedLocator(node);
      if (await patchNode(node, { ...options, change, isAsSeen })) options.onWritten(node, locator);
    }),
  );
};
