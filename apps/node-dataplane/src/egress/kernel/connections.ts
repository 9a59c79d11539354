import type { Conntrack } from '@unbounded/netlink';
import type { EgressPlan } from '../plan/egress-plan.ts';
import { changedSources, createStaleCheck } from '../plan/stale-connections.plan.ts';

/** Ends connections of pods whose packets leave in another way than before. */
export interface Connections {
  /** Behind it every connection of the pods has the source that the plan wants. @throws NetlinkError: the next pass tries again */
  settle(plan: EgressPlan): Promise<void>;
}

/** @param before the plan that connections are of which are there at the start; undefined: nobody knows, and all pods are looked at */
export const createConnections = (conntrack: Conntrack, before: EgressPlan | undefined): Connections => {
  let settled = before;
  const formerlyOwned = new Set((before?.addresses ?? []).map(({ address }) => address));
  return {
    async settle(plan) {
      const changed = changedSources(settled, plan);
      if (changed.length > 0) {
        const found = await conntrack.listFrom(changed);
        for (const connection of found.filter(createStaleCheck(plan, formerlyOwned)))
          await conntrack.delete(connection);
      }
      for (const { address } of plan.addresses) formerlyOwned.add(address);
      settled = plan;
    },
  };
};
