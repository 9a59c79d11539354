import type { FuzzTarget } from '@unbounded/testing';
import { type Random, randomOf } from '@unbounded/testing/seeded-random';
import type { Coverage } from './coverage.ts';
import { mutate } from './mutate.ts';

/** The search: an input that reaches something new is kept, and changed further. */

export interface SearchOptions {
  readonly seed: number;
  /** Inputs of earlier searches. */
  readonly corpus: readonly Uint8Array[];
  /** Absent: coverage says nothing, and only the seeds are changed (to see what guidance is worth). */
  readonly coverage?: Coverage;
  /** Is asked before each run. */
  readonly goesOn: (runs: number) => boolean;
  /** Is told each input before it runs. */
  readonly before: (input: Uint8Array) => void;
}

export interface Search {
  readonly runs: number;
  readonly features: number;
  /** The smallest inputs that together reach everything that was reached. */
  readonly corpus: readonly Uint8Array[];
  /** The input that made the target throw, and its error. */
  readonly finding?: { readonly input: Uint8Array; readonly error: unknown };
}

interface Kept {
  readonly input: Uint8Array;
  readonly features: readonly string[];
}

/** Smallest first; what adds nothing goes. */
const minimized = (kept: readonly Kept[]): Uint8Array[] => {
  const reached = new Set<string>();
  return kept
    .toSorted((a, b) => a.input.length - b.input.length)
    .filter(({ features }) => {
      const before = reached.size;
      for (const feature of features) reached.add(feature);
      return reached.size > before;
    })
    .map(({ input }) => input);
};

const NOTHING = new Uint8Array(0);

/** What was kept last leads furthest: half of the changes begin with the newest quarter. */
const pick = (pool: readonly Uint8Array[], random: Random): Uint8Array => {
  const newest = random(2) === 0 ? Math.floor((pool.length * 3) / 4) : 0;
  return pool[newest + random(pool.length - newest)] ?? NOTHING;
};

export const search = (target: FuzzTarget, options: SearchOptions): Search => {
  const { coverage, goesOn, before } = options;
  const random = randomOf(options.seed);
  const tokens = target.tokens ?? [];
  const beginnings = [...target.seeds, ...options.corpus];
  const queue = [NOTHING, ...beginnings].map((input) => input.slice(0, target.maxBytes));
  const [reached, kept, seen] = [new Set<string>(), [] as Kept[], new Set<string>()];
  let [runs, others] = [0, beginnings];
  /** Code that is compiled anew meanwhile changes its blocks: an input that was kept once is no news. */
  const keep = (input: Uint8Array, features: readonly string[]): void => {
    const isNews = features.some((feature) => !reached.has(feature));
    for (const feature of features) reached.add(feature);
    const name = String(input);
    if (!isNews || seen.has(name)) return;
    seen.add(name);
    kept.push({ input, features });
    others = kept.map((entry) => entry.input);
  };
  coverage?.take();
  const result = (): Search => ({ runs, features: reached.size, corpus: minimized(kept) });
  while (goesOn(runs)) {
    const input = queue.shift() ?? mutate(pick(others, random), { random, tokens, others }, target.maxBytes);
    before(input);
    runs++;
    try {
      target.run(input.slice());
    } catch (error) {
      return { ...result(), finding: { input, error } };
    }
    if (coverage) keep(input, coverage.take());
  }
  return result();
};
