import type { AddsInTurn } from './cni-add.ts';
import { median } from './rounds.ts';

/**
 * ADDs of two nodes, one pod each in turn: both of a pair see the same moment of the machine, whose minutes differ by more than what is measured.
 * What else tells the nodes apart is taken out by as many pairs with their parts exchanged.
 */

export interface Pair {
  readonly oursMs: number;
  readonly theirsMs: number;
}

const WARM_UP = 5;

/** Ends both. */
export const measurePairs = async (ours: AddsInTurn, theirs: AddsInTurn, count: number): Promise<Pair[]> => {
  const pairs: Pair[] = [];
  for (let number = 0; number < WARM_UP + count; number++) {
    if (number % 2 === 0) {
      const oursMs = await ours.next();
      pairs.push({ oursMs, theirsMs: await theirs.next() });
    } else {
      const theirsMs = await theirs.next();
      pairs.push({ oursMs: await ours.next(), theirsMs });
    }
  }
  await Promise.all([ours.end(), theirs.end()]);
  return pairs.slice(WARM_UP);
};

/** 95 % confidence interval of the median, whatever the distribution (order statistics of a binomial). */
const confidenceInterval = (values: readonly number[]): readonly [low: number, high: number] => {
  const sorted = values.toSorted((a, b) => a - b);
  const half = 0.98 * Math.sqrt(sorted.length);
  const at = (index: number): number => sorted[Math.min(sorted.length - 1, Math.max(0, index))]!;
  return [at(Math.floor(sorted.length / 2 - half)), at(Math.ceil(sorted.length / 2 + half))];
};

/** A row: both medians, and the median of what `compare` says of each pair, with its confidence interval. */
export const pairRow = (name: string, pairs: readonly Pair[], compare: (pair: Pair) => number): string => {
  const compared = pairs.map(compare);
  const medians = [pairs.map(({ oursMs }) => oursMs), pairs.map(({ theirsMs }) => theirsMs), compared].map(median);
  const [ours, theirs, middle, low, high] = [...medians, ...confidenceInterval(compared)].map((value) =>
    value.toFixed(2),
  );
  return `| ${name} | ${ours} | ${theirs} | ${middle} (${low} - ${high}) |`;
};
