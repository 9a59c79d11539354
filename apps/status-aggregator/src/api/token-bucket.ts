/** A token bucket: so many at once, and so many a second in the long run. */
export interface Pace {
  readonly burst: number;
  readonly perSecond: number;
}

export interface Bucket {
  readonly tokens: number;
  /** When it had so many; milliseconds, monotonic. */
  readonly atMs: number;
}

const MS_PER_S = 1000;

/** Tokens of the bucket by now. */
export const tokensNow = ({ tokens, atMs }: Bucket, { burst, perSecond }: Pace, nowMs: number): number =>
  Math.min(burst, tokens + ((nowMs - atMs) / MS_PER_S) * perSecond);
