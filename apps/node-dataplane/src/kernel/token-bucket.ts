/** Tokens that come back one by one, up to so many. */

export interface RateLimit {
  /** At once. */
  readonly burst: number;
  /** Then one in this time. */
  readonly everyMs: number;
}

export interface TokenBucket {
  /** Milliseconds until there is a token; 0: there is one. */
  waitMs(): number;
  /** After `waitMs` said that there is one. */
  take(): void;
}

/** @param elapsed milliseconds, of a clock that does not step */
export const createTokenBucket = (
  { burst, everyMs }: RateLimit,
  elapsed: () => number = () => performance.now(),
): TokenBucket => {
  let tokens = burst;
  let lastMs = elapsed();
  return {
    waitMs() {
      const now = elapsed();
      tokens = Math.min(burst, tokens + (now - lastMs) / everyMs);
      lastMs = now;
      return tokens < 1 ? Math.ceil((1 - tokens) * everyMs) : 0;
    },
    take: () => void (tokens -= 1),
  };
};
