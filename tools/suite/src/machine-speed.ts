/**
 * How fast this machine is now, so that budgets are kept or not kept by the tests and not by the machine: one that is half as fast, or
 * that other processes use half of, gives the tests twice the time.
 *
 * Computing and reading memory are measured, and the slower one counts: where neighbors of a virtual machine use the processor's
 * shared cache and its memory, programs with much code (Node, the kernel, an emulator) take twice as long, a short loop does not.
 */

export interface Measured {
  readonly computingMs: number;
  readonly readingMs: number;
}

/** What both take on the machine that the budgets are for (AMD EPYC, 2 processors). */
export const REFERENCE: Measured = { computingMs: 220, readingMs: 45 };
const REFERENCE_PROCESSORS = 2;

/** Steps of a 32-bit xorshift generator (Marsaglia 2003): no memory, so that it measures the processor alone. */
const STEPS = 150_000_000;
const compute = (steps: number): number => {
  let x = 2463534242;
  for (let i = 0; i < steps; i++) {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
  }
  return x;
};

/** Of 32 bits each: 64 MiB, twice a large cache. */
const WORDS = 1 << 24;
const READS = 500_000;
/** Each word is the index of the next: all in turn, in the order of a linear congruential generator (full period: Hull and Dobell 1962). */
const chain = (): Uint32Array => {
  const words = new Uint32Array(WORDS);
  for (let i = 0; i < WORDS; i++) words[i] = (Math.imul(i, 1_664_525) + 1_013_904_223) & (WORDS - 1);
  return words;
};
/** No read begins before the one before it has ended. */
const follow = (words: Uint32Array, reads: number, from: number): number => {
  let at = from;
  for (let i = 0; i < reads; i++) at = words[at]!;
  return at;
};

const timeOf = (work: () => unknown): number => {
  const started = performance.now();
  work();
  return performance.now() - started;
};

export const slownessOf = ({ computingMs, readingMs }: Measured, processors: number): number => {
  const slower = Math.max(computingMs / REFERENCE.computingMs, readingMs / REFERENCE.readingMs);
  return Math.max(1, slower * Math.max(1, REFERENCE_PROCESSORS / processors));
};

/** 1 on the machine of reference or a faster one; 2 on one that is half as fast. Takes half a second. */
export const measureSlowness = (processors: number): number => {
  const words = chain();
  // Compiled before it is measured.
  compute(STEPS / 100);
  const from = follow(words, READS / 10, 0);
  return slownessOf(
    { computingMs: timeOf(() => compute(STEPS)), readingMs: timeOf(() => follow(words, READS, from)) },
    processors,
  );
};
