/** By how much counters of the kernel rose between two looks. One that is lower than before began at 0 again. */

export const increase = (now: number, before = 0): number => (now < before ? now : now - before);

export interface Increases<K> {
  /** Since the counter was last looked at. */
  of(key: K, count: number): number;
  /** All of them begin at 0 again. */
  restarted(): void;
}

export const createIncreases = <K>(): Increases<K> => {
  const seen = new Map<K, number>();
  return {
    of(key, count) {
      const more = increase(count, seen.get(key));
      seen.set(key, count);
      return more;
    },
    restarted: () => seen.clear(),
  };
};
