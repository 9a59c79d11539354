/**
 * How many Events one program sends: some at once, then one after the other at a steady rate, whatever happens to what it tells of.
 * Events stay for an hour by default, so this also bounds the room that one program takes in the cluster's store.
 */
export interface EventAllowance {
  readonly most: number;
  /** One more after each of these times, milliseconds. */
  readonly everyMs: number;
}

/** Takes one from the allowance, if there is one. @param elapsed a clock that only goes forward, milliseconds */
export const createEventBudget = ({ most, everyMs }: EventAllowance, elapsed: () => number): (() => boolean) => {
  let left = most;
  let countedMs = elapsed();
  return () => {
    const gained = Math.floor((elapsed() - countedMs) / everyMs);
    left = Math.min(most, left + gained);
    countedMs = left === most ? elapsed() : countedMs + gained * everyMs;
    if (left === 0) return false;
    left--;
    return true;
  };
};
