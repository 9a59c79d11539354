/** A gap between two looks counts for so much at most: whoever looks may have been stopped itself, together with who writes. */
const MOST_GAP_MS = 10_000;

/**
 * For how long a number has been the same that somebody raises as long as he lives, as those see it who look now and then.
 * @param read undefined: there is none, and nothing is concluded
 * @param now monotonic, milliseconds
 * @returns looks
 */
export const createSignOfLife = (read: () => number | undefined, now: () => number): (() => number) => {
  let seen: number | undefined;
  let [lookedAtMs, unchangedMs] = [now(), 0];
  return () => {
    const found = read();
    const gapMs = now() - lookedAtMs;
    lookedAtMs += gapMs;
    unchangedMs = found === undefined || found !== seen ? 0 : unchangedMs + Math.min(gapMs, MOST_GAP_MS);
    seen = found;
    return unchangedMs;
  };
};
