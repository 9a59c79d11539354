/**
 * How many Events one program sends, whatever happens to what it tells of: some at once, then one after the other at a steady rate.
 * And how many there are of it at a time: its Events have one of so many names. That a policy can hold it to, where no policy sees a
 * rate: so a stolen token does not fill the store of the API server, however fast it writes.
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
