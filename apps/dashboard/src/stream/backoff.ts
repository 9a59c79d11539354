/** How long to wait before the next attempt to connect. */

const FIRST_MS = 500;
const LONGEST_MS = 30_000;
/** The server asked for it: it is full, or cannot review tokens now. */
export const TRY_LATER_MS = 5000;

/**
 * Doubles from attempt to attempt; the half of it is by chance, so that pages do not come back all at once after a restart.
 * @param attempt from 0
 * @param random from 0 to 1
 */
export const backoffMs = (attempt: number, random: number): number => {
  const most = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(attempt, 16));
  return Math.round(most / 2 + (most / 2) * random);
};
