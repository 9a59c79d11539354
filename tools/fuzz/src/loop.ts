import type { FuzzTarget } from '@unbounded/testing';
import { randomOf } from '@unbounded/testing/seeded-random';
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

export const search = (target: FuzzTarget, options: SearchOptions): Search => {
  const { coverage, goesOn, before } = options;
  const random = randomOf(options.seed);
  const beginnings = [...target.seeds, ...options.corpus];
  const queue = [new Uint8Array(0), ...beginnings].map((input) => input.slice(0, target.maxBytes));
  const [reached, kept] = [new Set<string>(), [] as Kept[]];
  const pool = (): readonly Uint8Array[] => (kept.length > 0 ? kept.map(({ input }) => input) : beginnings);
  let [runs, others] = [0, pool()];
  coverage?.take();
  const result = (): Search => ({ runs, features: reached.size, corpus: minimized(kept) });
  while (goesOn(runs)) {
    const input = queue.shift() ?? mutate(others[random(others.length)] ?? new Uint8Array(0), { random, tokens: target.tokens ?? [], others }, target.maxBytes);
    before(input);
    runs++;
    try {
      target.run(input.slice());
    } catch (error) {
      return { ...result(), finding: { input, error } };
    }
    const features = coverage?.take() ?? [];
    if (features.every((feature) => reached.has(feature))) continue;
    for (const feature of features) reached.add(feature);
    kept.push({ input, features });
    others = pool();
  }
  return result();
};
