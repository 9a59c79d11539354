import { createTokenBucket, type TokenBucket } from '../../kernel/token-bucket.ts';

/**
 * Whether a thing may be repaired once more, and what was changed too often: an agent that does nothing else helps nobody. Each thing has
 * its own limit.
 */

/** Repairs of each thing. */
const LIMIT = { burst: 10, everyMs: 5000 };
const SPENT_MS = 1000;
/** So long after its last change a thing that was changed too often is contested. */
const CONTESTED_MS = 60_000;

interface Allowance {
  readonly bucket: TokenBucket;
  spentMs: number;
  /** Since when there was none left. */
  contestedMs: number;
}

/** @param elapsed milliseconds, of a clock that does not step */
export const createPatience = (elapsed: () => number) => {
  const allowances = new Map<string, Allowance>();
  return {
    allows(thing: string): boolean {
      const allowance = allowances.get(thing) ?? {
        bucket: createTokenBucket(LIMIT, elapsed),
        spentMs: -Infinity,
        contestedMs: -Infinity,
      };
      allowances.set(thing, allowance);
      const isAllowed = allowance.bucket.waitMs() === 0;
      if (!isAllowed) allowance.contestedMs = elapsed();
      return isAllowed;
    },
    /** After `allows`, when something had to be repaired. What goes on and on counts once a second: a program may need some to remove all. */
    spend(thing: string): void {
      const allowance = allowances.get(thing)!;
      if (elapsed() - allowance.spentMs < SPENT_MS) return;
      allowance.spentMs = elapsed();
      allowance.bucket.take();
    },
    contested: () =>
      [...allowances].filter(([, { contestedMs }]) => elapsed() - contestedMs < CONTESTED_MS).map(([thing]) => thing),
  };
};
