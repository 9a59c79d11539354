import type { Conntrack } from '@unbounded/netlink';
import { createQueue } from '../../kernel/in-turn.ts';
import type { EgressPlan } from '../plan/egress-plan.ts';
import { changedSources, createStaleCheck } from '../plan/stale-connections.plan.ts';

/** Ends connections of pods whose packets leave in another way than before. */
export interface Connections {
  /** The kernel is about to follow the plan: connections are judged by it from now on. */
  begins(plan: EgressPlan): void;
  /** Packets go by the plan: connections of pods that it changes are looked at by the next `settle`. */
  inForce(plan: EgressPlan): void;
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
  let isStale: IsStale = () => false;
  return {
    begins(plan) {
      isStale = whenAsked(() => createStaleCheck(plan, formerlyOwned));
    },
    inForce(plan) {
      changed = changed.union(new Set(changedSources(last, plan)));
      for (const { address } of plan.addresses) formerlyOwned.add(address);
      last = plan;
    },
    settle: () =>
      inTurn(async () => {
        const looked = changed;
        if (looked.size === 0) return;
        changed = new Set();
        try {
          // Another plan may begin meanwhile: each connection is judged by the latest.
          for (const connection of await conntrack.listFrom([...looked]))
            if (isStale(connection)) await conntrack.delete(connection);
        } catch (error) {
          changed = changed.union(looked);
          throw error;
        }
      }),
  };
};
