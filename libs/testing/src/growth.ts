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
  small(); // compiled by then
  let [smallMs, largeMs] = [Infinity, Infinity];
  for (let round = 0; round < MOST_ROUNDS && !(largeMs < most * smallMs); round++) {
    for (let run = 0; run < SMALL_RUNS; run++) smallMs = Math.min(smallMs, processorMs(small));
    largeMs = Math.min(largeMs, processorMs(large));
  }
  return largeMs / smallMs;
};
