import { done, inParallel, type ObjectWrites, type Reconcile, type Source } from '@unbounded/controller-runtime';
import { type Condition, labels } from '@unbounded/crds';
import {
  applyStatus,
  type EventRecorder,
  ignoreGone,
  type KubeObject,
  type Node,
  type ResourceClient,
} from '@unbounded/kube';
import type { Logger } from '@unbounded/telemetry';

import { FIELD_MANAGER, PARALLEL_WRITES } from './api-writes.ts';
import type { LabelChange } from './membership.plan.ts';
import type { NodeConditionChange } from './node-conditions.plan.ts';

/**
 * Labels and conditions of Nodes. Written beside the rounds that write slices: each of a thousand Nodes may take as long as a webhook for
 * Nodes that hangs, and agents read the slices.
 */

/** Conditions of a Node are those of our kinds, without observedGeneration. */
type NodeWithConditions = KubeObject & { readonly status?: { readonly conditions?: readonly Condition[] } };

interface PlannedNodeWrites {
  /** As they were read, by name. */
  readonly nodes: ReadonlyMap<string, Node>;
  readonly labels: readonly LabelChange[];
  readonly conditions: readonly NodeConditionChange[];
}

export interface NodeWrites {
  /** What is to be written from now on, instead of what was planned before. */
  plan(planned: PlannedNodeWrites): void;
  readonly source: Source;
  readonly reconcile: Reconcile;
}

export interface NodeWritesOptions {
  readonly client: ResourceClient<Node>;
  readonly recorder: EventRecorder;
  readonly logger: Logger;
  readonly writes: ObjectWrites;
}

const KEY = 'nodes';

export const createNodeWrites = ({ client, recorder, logger, writes }: NodeWritesOptions): NodeWrites => {
  let planned: PlannedNodeWrites = { nodes: new Map(), labels: [], conditions: [] };
  let enqueue = (_key: string): void => {};

  const label = ({ node, site }: LabelChange, object: Node, signal: AbortSignal): Promise<void> => {
    const patch = { metadata: { labels: { [labels.site]: site ?? null } } };
    return writes.attempt(object, `label ${labels.site}`, async () => {
      await client.mergePatch(node, patch, { signal }).catch(ignoreGone);
      logger.info({ node, site }, site === undefined ? 'in no site' : 'in site');
    });
  };
  const condition = ({ node, condition: wanted }: NodeConditionChange, signal: AbortSignal): Promise<void> =>
    writes.attempt(node, `condition ${wanted.type}`, () =>
      applyStatus(
        client as unknown as ResourceClient<NodeWithConditions>,
        node as NodeWithConditions,
        { conditions: [wanted] },
        { fieldManager: FIELD_MANAGER, signal, recorder },
      ).catch(ignoreGone),
    );

  return {
    plan(next) {
      planned = next;
      enqueue(KEY);
    },
    // No keys: a leader must not begin with what was planned when it led before.
    source: { connect: (add) => void (enqueue = add), keys: () => [] },
    async reconcile(_key, signal) {
      const current = planned;
      const { nodes, labels: changes, conditions } = current;
      /** The rest of a plan that another has replaced is not written any more. */
      const eachOf = <T>(items: readonly T[], write: (item: T) => Promise<void>): Promise<void> =>
        inParallel(items, PARALLEL_WRITES, async (item) => {
          if (planned === current) await write(item);
        });
      await eachOf(changes, (change) => label(change, nodes.get(change.node)!, signal));
      await eachOf(conditions, (change) => condition(change, signal));
      if (planned !== current) return done; // its key waits already, and what rests after a failure goes on resting
      return writes.verdict();
    },
  };
};
