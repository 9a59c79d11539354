import { RecentlyUsed } from '../access/recently-used.ts';
import { Refusal } from './refusal.ts';
import { type Bucket, type Pace, tokensNow } from './token-bucket.ts';

/** How often one may ask: token buckets, one of each. */
export interface RequestPace {
  /** @throws Refusal when the key's bucket is empty */
  take(key: string): void;
}

export interface RequestPaceOptions extends Pace {
  /** Milliseconds, monotonic. */
  readonly elapsed?: (() => number) | undefined;
}

/** Ten dashboards of one user that come back at once, or that each look at something once a second, stay below it. */
export const VIEWER_PACE = { burst: 20, perSecond: 10 } as const;

/** Of users at the same time; whoever was dropped for others begins with a full bucket. */
const MOST_KEYS = 1000;

export const createRequestPace = ({
  burst,
  perSecond,
  elapsed = () => performance.now(),
}: RequestPaceOptions): RequestPace => {
  const buckets = new RecentlyUsed<Bucket>(MOST_KEYS);
  return {
    take(key) {
      const nowMs = elapsed();
      const before = buckets.get(key) ?? { tokens: burst, atMs: nowMs };
      const tokens = tokensNow(before, { burst, perSecond }, nowMs);
      buckets.set(key, { tokens: tokens < 1 ? tokens : tokens - 1, atMs: nowMs });
      if (tokens >= 1) return;
      const message = `more than ${perSecond} requests a second`;
      throw new Refusal({ status: 429, reason: 'TooManyRequests', message, retryAfterS: 1 });
    },
  };
};
