import { setTimeout as sleep } from 'node:timers/promises';

/** Long enough for the timers that end the term of a leader, and for what they abort. */
const TURN_MS = 50;

/**
 * Called before each write: a process that was suspended has lost its Lease meanwhile, and learns that from a timer which is late, too.
 * After a longer break it gets the time to do so. @throws the reason of the signal, once it is aborted
 */
export const createWritePace = ({
  longestBreakMs,
  now = () => performance.now(),
}: {
  readonly longestBreakMs: number;
  readonly now?: () => number;
}): ((signal: AbortSignal) => Promise<void>) => {
  let lastMs = -Infinity;
  return async (signal) => {
    if (now() - lastMs > longestBreakMs) await sleep(TURN_MS);
    signal.throwIfAborted();
    lastMs = now();
  };
};
