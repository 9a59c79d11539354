/**
 * How often one node may change what others read: some changes at once, then ever more rarely. Whatever it does, at most
 * {@link MOST_AT_ONCE} + t / {@link SLOWEST_MS} changes are accepted within t; a first key may be one more.
 */

/** Changes without a pause. A node that joins has some, a documented key rotation two: the next key, then its promotion. */
const BURST = 5;
/** After the last of these, and doubled with every further change. */
const FIRST_INTERVAL_MS = 8000;
/** The pause does not grow beyond this: one change a minute. So long a pause is also what gives one change back. */
export const SLOWEST_MS = 60_000;
/** After so long without a change that was due, the node is told no more that it changes too often. */
export const QUIET_MS = 60_000;
/** The burst, and those until the pause is the longest. */
export const MOST_AT_ONCE = BURST + Math.ceil(Math.log2(SLOWEST_MS / FIRST_INTERVAL_MS));

export interface Allowance {
  /** Changes that were accepted and not given back yet, at `dueMs`; they are given back by fractions. */
  readonly used: number;
  /** When the next change may be accepted. */
  readonly dueMs: number;
}

export const FULL_ALLOWANCE: Allowance = { used: 0, dueMs: -Infinity };

const pauseMs = (used: number): number =>
  used < BURST ? 0 : Math.min(SLOWEST_MS, FIRST_INTERVAL_MS * 2 ** (used - BURST));

export const isSpent = ({ dueMs }: Allowance, nowMs: number): boolean => nowMs < dueMs;

/** Only time beyond the pause gives changes back: else a node that changes as often as it may would never be slowed further. */
export const spend = ({ used, dueMs }: Allowance, nowMs: number): Allowance => {
  const left = Math.max(0, used - Math.max(0, nowMs - dueMs) / SLOWEST_MS);
  const now = Math.min(MOST_AT_ONCE, left + 1);
  return { used: now, dueMs: nowMs + pauseMs(Math.round(now)) };
};
