import { backoffDelay, type BackoffOptions } from '@unbounded/controller-runtime';

/** After a failure a record rests: its own condition, which is written then, would wake it up at once. */
export interface Pauses {
  /** Milliseconds; 0: it does not rest. */
  restMs(key: string): number;
  /** How long it rests. @param retryAfterMs at least as long as the server says */
  fail(key: string, backoff: BackoffOptions, retryAfterMs?: number): number;
  succeed(key: string): void;
  /** All are tried again at once. */
  end(): void;
}

/** @param now monotonic, milliseconds */
export const createPauses = (now: () => number): Pauses => {
  const failures = new Map<string, { readonly count: number; readonly untilMs: number }>();
  return {
    restMs: (key) => Math.max((failures.get(key)?.untilMs ?? 0) - now(), 0),
    fail(key, backoff, retryAfterMs = 0) {
      const count = (failures.get(key)?.count ?? 0) + 1;
      const ms = Math.max(backoffDelay(count, backoff), retryAfterMs);
      failures.set(key, { count, untilMs: now() + ms });
      return ms;
    },
    succeed: (key) => void failures.delete(key),
    end: () => failures.clear(),
  };
};

export interface Budget {
  /** Takes one; else milliseconds until there is one. */
  take(key: string): number;
  /** The last one was not used. */
  giveBack(key: string): void;
  forget(key: string): void;
}

const HOUR_MS = 3_600_000;

/**
 * So many an hour for each record, and not sooner than some time after the last one: whatever its node asks for.
 * @param now monotonic, milliseconds
 */
export const createBudget = (
  { everyMs, perHour }: { readonly everyMs: number; readonly perHour: number },
  now: () => number,
): Budget => {
  const taken = new Map<string, readonly number[]>();
  return {
    take(key) {
      const atMs = now();
      const recent = (taken.get(key) ?? []).filter((ms) => atMs - ms < HOUR_MS);
      const sinceLastMs = atMs - (recent.at(-1) ?? -Infinity);
      const waitMs = Math.max(
        everyMs - sinceLastMs,
        recent.length < perHour ? 0 : recent[recent.length - perHour]! + HOUR_MS - atMs,
      );
      if (waitMs > 0) return waitMs;
      taken.set(key, [...recent, atMs]);
      return 0;
    },
    giveBack: (key) => void taken.set(key, (taken.get(key) ?? []).slice(0, -1)),
    forget: (key) => void taken.delete(key),
  };
};

/** What was looked for in vain is looked for again later and later, another thing at once. */
export interface Misses {
  restMs(key: string, what: string): number;
  miss(key: string, what: string): number;
  forget(key: string): void;
}

const MISSED: BackoffOptions = { baseMs: 1000, maxMs: 300_000 };

/** @param now monotonic, milliseconds */
export const createMisses = (now: () => number): Misses => {
  const missed = new Map<string, { readonly what: string; readonly count: number; readonly untilMs: number }>();
  const of = (key: string, what: string) => {
    const last = missed.get(key);
    return last?.what === what ? last : undefined;
  };
  return {
    restMs: (key, what) => Math.max((of(key, what)?.untilMs ?? 0) - now(), 0),
    miss(key, what) {
      const count = (of(key, what)?.count ?? 0) + 1;
      const ms = backoffDelay(count, MISSED);
      missed.set(key, { what, count, untilMs: now() + ms });
      return ms;
    },
    forget: (key) => void missed.delete(key),
  };
};
