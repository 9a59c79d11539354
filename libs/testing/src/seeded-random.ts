/** Whole numbers from 0 to below `limit`. The same seed gives the same numbers. */
export type Random = (limit: number) => number;

/** mulberry32 (public domain). */
export const randomOf = (seed: number): Random => {
  let state = seed >>> 0;
  return (limit) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * limit);
  };
};
