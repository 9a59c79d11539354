/** How the cost of a computation grows with its input. A time would depend on the machine, and on what else runs there. */

const SMALL_RUNS = 3;
/** Of the large input. One that is not disturbed is enough: what grows too fast stays above the bound however often it is measured. */
const MOST_ROUNDS = 20;

const processorMs = (work: () => void): number => {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
};

/**
 * How many times the processor time of `small` is that of `large`, by the least of each. Once it is below `most` it is not measured again.
 * @param most between what is right, and what the mistake would be
 */
export const growthBelow = (most: number, small: () => void, large: () => void): number => {
  let [smallMs, largeMs] = [Infinity, Infinity];
  const measureSmall = (): void => {
    for (let run = 0; run < SMALL_RUNS; run++) smallMs = Math.min(smallMs, processorMs(small));
  };
  small(); // compiled by then
  for (let round = 0; round < MOST_ROUNDS && !(largeMs < most * smallMs); round++) {
    measureSmall();
    largeMs = Math.min(largeMs, processorMs(large));
    measureSmall(); // by what V8 has made of the code meanwhile: it optimizes while the large input runs
  }
  return largeMs / smallMs;
};
