import { EGRESS_ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import type { RouteSocket } from '@unbounded/netlink';
import { listRules } from '../kernel/routing-rules.ts';
import type { EgressPlan } from './plan/egress-plan.ts';
import { podAddresses } from './plan/route-rules.plan.ts';

/** Addresses of pods of this node that the kernel steers, or may steer: another pod can have one before a pass has seen that its own is gone. */
export interface SteeredAddresses {
  /** Whether any of them is. */
  holds(addresses: readonly string[]): boolean;
  /** The kernel is about to be changed to the plan. */
  begins(plan: EgressPlan): void;
  /** It holds the plan, and nothing of those before it. */
  inForce(plan: EgressPlan): void;
}

/** @param before those that an agent before this one left in the kernel */
export const createSteeredAddresses = (before: Iterable<string>): SteeredAddresses => {
  let all: ReadonlySet<string> = new Set(before);
  return {
    holds: (addresses) => addresses.some((address) => all.has(address)),
    begins(plan) {
      all = all.union(new Set(podAddresses(plan.steered)));
    },
    inForce(plan) {
      all = new Set(podAddresses(plan.steered));
    },
  };
};

/** Of the pods of this node that the kernel has rules about, whoever made them. */
export const ruledAddresses = async (net: RouteSocket): Promise<string[]> =>
  (await listRules(net, EGRESS_ROUTE_PROTOCOL)).flatMap(({ src }) => src?.split('/')[0] ?? []);
