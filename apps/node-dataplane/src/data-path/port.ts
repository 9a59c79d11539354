import type { Link, RouteSpec } from '@unbounded/netlink';
import type { ForwardingEntry } from '@unbounded/status';
import type { NodePlan, Problem } from '@unbounded/topology';
import type { GroupsInUse } from './forwarding.diff.ts';
import type { KernelPlan } from './kernel-plan.ts';
import type { GroupStore } from './group-store.ts';
import type { HealthGroup } from '../connectivity/health/messages.ts';
import type { Guard } from '../connectivity/kernel/tunnel-gate.ts';

/**
 * How packets find their next hop: by eBPF programs and maps, or by kernel routes alone. The steps stand in the order in
 * which a pass takes them; between `prepare` and `apply` the thread that probes writes the groups.
 */
export interface DataPath {
  /** Where its next-hop groups are: the thread that probes writes them. */
  readonly groups: GroupStore;
  /** What the kernel is to hold for a plan. */
  render(plan: NodePlan): KernelPlan;
  /** Brings the source checks of tunnel devices into force that this data path has; which devices have one. */
  guard(plan: KernelPlan, links: ReadonlyMap<string, Link>): Guard;
  /**
   * Brings into being what groups consist of, and says what the groups are to be.
   * @param down names of tunnel devices that are there and down
   */
  prepare(plan: KernelPlan, links: ReadonlyMap<string, Link>, down: ReadonlySet<string>): Promise<Prepared>;
  /** Writes what points at the groups. */
  apply(): Promise<readonly Problem[]>;
  routes(plan: KernelPlan, links: ReadonlyMap<string, Link>): readonly RouteSpec[];
  /** Takes away what the plan does not have; then nothing points at groups of old any more. */
  removeStale(): Promise<void>;
  /** Groups of old are gone: takes away what they consisted of, and what the other data path left behind. */
  removeLeftovers(): Promise<void>;
  /** Reads what the last plan wanted and what the kernel has, besides routes. */
  compare(now: ComparedWith): Promise<Compared>;
  /** Forgets a device that is about to go. */
  detach(device: string): void;
  /** Lets go of everything; what the kernel holds stays. */
  close(): void;
}

interface ComparedWith {
  /** Names of devices by their indexes. */
  readonly devices: ReadonlyMap<number, string>;
  readonly inUse: GroupsInUse;
}

interface Compared {
  readonly entries: readonly ForwardingEntry[];
  /** Of the groups that routes point at. */
  readonly groupNames: ReadonlyMap<number, string>;
}

interface Prepared {
  readonly groups: readonly HealthGroup[];
  readonly problems: readonly Problem[];
}
