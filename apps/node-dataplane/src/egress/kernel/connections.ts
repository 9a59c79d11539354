import type { Conntrack } from '@unbounded/netlink';
import { createQueue } from '../../kernel/in-turn.ts';
import type { EgressPlan } from '../plan/egress-plan.ts';
import { changedSources, createStaleCheck } from '../plan/stale-connections.plan.ts';

/** Ends connections of pods whose packets leave in another way than before. */
export interface Connections {
  /** The kernel is about to follow the plan: until it does, only those end that neither this plan nor the one before has. */
  begins(plan: EgressPlan): void;
  /**
   * The kernel has been changed to the plan: connections of pods that it changes are looked at by the next `settle`.
   * @param isWhole false: packets may still go by the plan before, or by either; the same pods are looked at again behind the next whole one
   */
  inForce(plan: EgressPlan, isWhole: boolean): void;
  /**
   * Behind it every connection of the pods that were changed before has the source that new ones get. Tables and pods that are attached need
   * not wait for it: a list of connections takes the longer the more there can be.
   * @throws NetlinkError: the next call tries again
   */
  settle(): Promise<void>;
}

type IsStale = ReturnType<typeof createStaleCheck>;

/** Most plans change nothing that a connection is judged by. */
const whenAsked = (make: () => IsStale): IsStale => {
  let made: IsStale | undefined;
  return (connection) => (made ??= make())(connection);
};

/** @param before the plan that connections are of which are there at the start; undefined: nobody knows, and all pods are looked at */
export const createConnections = (conntrack: Conntrack, before: EgressPlan | undefined): Connections => {
  const inTurn = createQueue();
  const formerlyOwned = new Set((before?.addresses ?? []).map(({ address }) => address));
  let last = before;
  let changed: ReadonlySet<string> = new Set();
  /** Of plans that did not come into force wholly. */
  let unsure: ReadonlySet<string> = new Set();
  let judges: readonly IsStale[] = [];
  return {
    begins(plan) {
      judges = [...judges.slice(0, 1), whenAsked(() => createStaleCheck(plan, formerlyOwned))];
    },
    inForce(plan, isWhole) {
      const own = unsure.union(new Set(changedSources(last, plan)));
      changed = changed.union(own);
      unsure = isWhole ? new Set() : own;
      for (const { address } of plan.addresses) formerlyOwned.add(address);
      if (!isWhole) return;
      last = plan;
      judges = judges.slice(-1);
    },
    settle: () =>
      inTurn(async () => {
        const looked = changed;
        if (looked.size === 0) return;
        changed = new Set();
        try {
          // Another plan may begin meanwhile.
          for (const connection of await conntrack.listFrom([...looked]))
            if (judges.every((isStale) => isStale(connection))) await conntrack.delete(connection);
        } catch (error) {
          changed = changed.union(looked);
          throw error;
        }
      }),
  };
};

/**
 * Changes the kernel to the plan. Whatever becomes of it, pods whose connections it may have made others are looked at.
 * @param isWhole whether the outcome is the whole plan in force
 */
export const changeFollowed = async <T>(
  connections: Pick<Connections, 'begins' | 'inForce'>,
  plan: EgressPlan,
  change: () => Promise<T>,
  isWhole: (outcome: T) => boolean,
): Promise<T> => {
  connections.begins(plan);
  let wasWhole = false;
  try {
    const outcome = await change();
    wasWhole = isWhole(outcome);
    return outcome;
  } finally {
    connections.inForce(plan, wasWhole);
  }
};
