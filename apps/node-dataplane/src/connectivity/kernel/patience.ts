/**
 * Whether a thing may be repaired once more, and what was changed too often: an agent that does nothing else helps nobody. Each thing has
 * its own limit.
 */

/** For each thing: so many repairs at once, and then one in this time. */
const [BURST, EVERY_MS] = [10, 5000];
const SPENT_MS = 1000;
/** So long after its last change a thing that was changed too often is contested. */
const CONTESTED_MS = 60_000;
interface Allowance {
  tokens: number;
  lastMs: number;
  spentMs: number;
  /** Since when there was none left. */
  contestedMs: number;
}

/** @param elapsed milliseconds, of a clock that does not step */
export const createPatience = (elapsed: () => number) => {
  const allowances = new Map<string, Allowance>();
  return {
    allows(thing: string): boolean {
      const now = elapsed();
      const allowance = allowances.get(thing) ?? {
        tokens: BURST,
        lastMs: now,
        spentMs: -Infinity,
        contestedMs: -Infinity,
      };
      allowances.set(thing, allowance);
      allowance.tokens = Math.min(BURST, allowance.tokens + (now - allowance.lastMs) / EVERY_MS);
      allowance.lastMs = now;
      if (allowance.tokens < 1) {
        allowance.contestedMs = now;
        return false;
      }
      return true;
    },
    /** After `allows`, when something had to be repaired. What goes on and on counts once a second: a program may need some to remove all. */
    spend(thing: string): void {
      const allowance = allowances.get(thing)!;
      if (elapsed() - allowance.spentMs < SPENT_MS) return;
      allowance.spentMs = elapsed();
      allowance.tokens -= 1;
    },
    contested: () =>
      [...allowances].filter(([, { contestedMs }]) => elapsed() - contestedMs < CONTESTED_MS).map(([thing]) => thing),
  };
};
