export interface BackoffOptions {
  /** The delay after the first failure, milliseconds. */
  readonly baseMs: number;
  readonly maxMs: number;
  /** From 0 to below 1; `Math.random` when not set. */
  readonly random?: () => number;
}

/**
 * The delay after `failures` failures in a row (from 1): doubled each time up to the limit, and spread over its upper
 * half, so that many who failed together do not come back together.
 */
export const backoffDelay = (failures: number, { baseMs, maxMs, random = Math.random }: BackoffOptions): number => {
  const full = Math.min(maxMs, baseMs * 2 ** Math.min(failures - 1, 30));
  return full / 2 + (full / 2) * random();
};
