const FIRST_MS = 1000;
const LAST_MS = 30_000;

/** A session shorter than this counts as one more failure: two nodes with one key must not fight every second. */
export const STABLE_MS = 30_000;

/**
 * How long to wait after so many failures in a row (from 1): any time up to a limit of 1 s that doubles to 30 s. Full
 * jitter: all clients of a relay lose it at the same moment, and must not come back at the same one.
 */
export const reconnectDelay = (failures: number, random: () => number): number =>
  random() * Math.min(LAST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 30));

/**
 * A relay may not know a new node's key yet: for so many refusals the next attempt follows within the 4 s of the third
 * failure, for some minute; afterwards as after any other failure.
 */
export const MOST_REFUSALS = 30;
export const REFUSED_FAILURES = 3;

/** So many failures in a row that the limit is at its highest. */
export const MOST_FAILURES = Math.ceil(Math.log2(LAST_MS / FIRST_MS)) + 1;

/** No relay drains for longer; the timers of Node.js take 2^31 ms at most, and fire at once for more. */
const LONGEST_DRAIN_MS = 10 * 60_000;

/** When to leave a relay that drains: after half of the time that it gives to all of it, so that its clients do not go at one moment. */
export const leaveDelay = (withinMs: number, random: () => number): number =>
  (Math.min(withinMs, LONGEST_DRAIN_MS) / 2) * (1 + random());
