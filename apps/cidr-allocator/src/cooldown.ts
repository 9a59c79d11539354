import type { Prefix } from '@unbounded/ip';

/**
 * Blocks of Nodes that were deleted a moment ago: peers may still route them to the old node, and connections of its pods are
 * still retried. Every replica remembers them, the leader or not.
 */
export interface Cooldown {
  released(prefixes: readonly Prefix[]): void;
  /** The blocks that should not be given yet. */
  cooling(): readonly Prefix[];
}

/** @param now monotonic, milliseconds */
export const createCooldown = (cooldownMs: number, now: () => number = () => performance.now()): Cooldown => {
  let entries: readonly { readonly prefix: Prefix; readonly untilMs: number }[] = [];
  /** Nobody asks a replica that does not lead: it forgets as it learns. */
  const current = () => entries.filter(({ untilMs }) => untilMs > now());
  return {
    released: (prefixes) => {
      entries = [...current(), ...prefixes.map((prefix) => ({ prefix, untilMs: now() + cooldownMs }))];
    },
    cooling: () => {
      entries = current();
      return entries.map(({ prefix }) => prefix);
    },
  };
};
