/**
 * What has been so for long. How long is measured from where it was first seen so: times in objects are by the clock of an API server, which
 * may have been set since, as may ours. A new leader measures anew.
 */
export interface LongStanding<T> {
  /** Of what is so now, what has been at every look for the whole time. */
  readonly observe: (present: readonly T[]) => readonly T[];
  /** Until the next one has been; undefined: none is waited for. */
  readonly nextMs: () => number | undefined;
}

/** @param now monotonic, milliseconds */
export const createLongStanding = <T>(
  now: () => number,
  { afterMs, keyOf }: { readonly afterMs: number; readonly keyOf: (one: T) => string },
): LongStanding<T> => {
  let seenMs = new Map<string, number>();
  return {
    observe(present) {
      seenMs = new Map(present.map(keyOf).map((key) => [key, seenMs.get(key) ?? now()]));
      return present.filter((one) => now() - seenMs.get(keyOf(one))! >= afterMs);
    },
    nextMs() {
      const rest = [...seenMs.values()].map((ms) => ms + afterMs - now()).filter((ms) => ms > 0);
      return rest.length === 0 ? undefined : Math.min(...rest);
    },
  };
};
