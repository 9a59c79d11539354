import type { NextHop } from '@unbounded/bpf-maps';
import type { Problem } from '@unbounded/topology';
import type { Family } from './messages.ts';

/** A group as it is to be in the kernel; a member of weight 0 carries nothing. */
export interface WeightedGroup {
  readonly index: number;
  readonly family: Family;
  readonly members: readonly { readonly record: NextHop | number; readonly weight: number }[];
}

/** Where next-hop groups live: in a map of the eBPF programs, or among the kernel's routes. */
export interface GroupKernel {
  /** Members that a group can hold. */
  readonly largestGroup: number;
  /**
   * Adds and corrects groups, also those that somebody else changed; what is right is not written again. They are asked for
   * after everything that takes time: what was written meanwhile (`write`) is newer than what they were before.
   */
  ensure(groups: () => readonly WeightedGroup[]): Promise<readonly Problem[]>;
  /** Writes one group at once: a failover. What cannot be written is so at the next `ensure`. */
  write(group: WeightedGroup): void;
  /** Deletes the other groups. */
  keepOnly(indexes: ReadonlySet<number>): Promise<void>;
  close(): Promise<void>;
}
