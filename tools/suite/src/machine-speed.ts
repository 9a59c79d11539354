/**
 * How fast this machine is now, so that budgets are kept or not kept by the tests and not by the machine: a processor that is half as
 * fast, or that other processes use half of the time, gives the tests twice the time.
 */

/** Steps of a 32-bit xorshift generator (Marsaglia 2003): no memory, so that it measures the processor alone. */
const STEPS = 150_000_000;
/** What they take on the machine that the budgets are for (AMD EPYC, 2 processors). */
export const REFERENCE_MS = 220;
const REFERENCE_PROCESSORS = 2;

const work = (steps: number): number => {
  let x = 2463534242;
  for (let i = 0; i < steps; i++) {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
  }
  return x;
};

export const slownessOf = (measuredMs: number, processors: number): number =>
  Math.max(1, (measuredMs / REFERENCE_MS) * Math.max(1, REFERENCE_PROCESSORS / processors));

/** 1 on the machine of reference or a faster one; 2 on one that is half as fast. Takes some 300 ms. */
export const measureSlowness = (processors: number): number => {
  work(STEPS / 100); // compiled before it is measured
  const started = performance.now();
  work(STEPS);
  return slownessOf(performance.now() - started, processors);
};
