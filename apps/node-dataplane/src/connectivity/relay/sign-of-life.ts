/** A gap between two looks counts for so much at most: whoever looks may have been stopped itself, together with who writes. */
const MOST_GAP_MS = 10_000;

export interface SignOfLife {
  /** Looks. @returns for how long it has been the same, milliseconds */
  look(): number;
  /** Begins anew. */
  reset(): void;
}

/**
 * A number that somebody raises as long as he lives, as those see it who look now and then.
 * @param read undefined: there is none, and nothing is concluded; nor where it cannot be read (an error)
 * @param now monotonic, milliseconds
 */
export const createSignOfLife = (read: () => number | undefined, now: () => number): SignOfLife => {
  let seen: number | undefined;
  let [lookedAtMs, unchangedMs] = [now(), 0];
  const reset = (): void => {
    [seen, unchangedMs] = [undefined, 0];
  };
  return {
    look() {
      const gapMs = now() - lookedAtMs;
      lookedAtMs += gapMs;
      try {
        const found = read();
        unchangedMs = found === undefined || found !== seen ? 0 : unchangedMs + Math.min(gapMs, MOST_GAP_MS);
        seen = found;
      } catch {
        // as it was
      }
      return unchangedMs;
    },
    reset,
  };
};
