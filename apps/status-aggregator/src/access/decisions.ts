import { RecentlyUsed } from './recently-used.ts';
import { ReviewUnavailable, type Verdict } from './verdict.ts';

export interface DecisionLimits {
  /** How long a verdict is used without asking again. */
  readonly grantedMs: number;
  readonly refusedMs: number;
  /** How long a granted one is used while the API server cannot be asked. */
  readonly staleMs: number;
  /** After a failed question, until the next about the same one. */
  readonly retryMs: number;
  readonly mostEntries: number;
  readonly mostInFlight: number;
}

export const DECISION_LIMITS: DecisionLimits = {
  grantedMs: 60_000,
  refusedMs: 5000,
  staleMs: 600_000,
  retryMs: 5000,
  mostEntries: 10_000,
  mostInFlight: 64,
};

interface Entry<T> {
  readonly verdict: Verdict<T>;
  readonly decidedAt: number;
  freshUntil: number;
}

/**
 * Remembers verdicts by key, bounded in number and time. Concurrent questions with one key are one; while nobody answers, a
 * granted verdict goes on to be used. Expiry is by the wall clock (`now`), everything else by the monotonic one.
 */
export class Decisions<T> {
  readonly #limits: DecisionLimits;
  readonly #now: () => Date;
  /** Apart: strangers with ever other tokens push no granted one out. */
  readonly #granted: RecentlyUsed<Entry<T>>;
  readonly #refused: RecentlyUsed<Entry<T>>;
  readonly #inFlight = new Map<string, Promise<Verdict<T>>>();

  constructor(now: () => Date, limits: DecisionLimits) {
    this.#limits = limits;
    this.#now = now;
    this.#granted = new RecentlyUsed(limits.mostEntries);
    this.#refused = new RecentlyUsed(limits.mostEntries);
  }

  /** @throws ReviewUnavailable when there is neither an answer nor a verdict that may still be used */
  async decide(key: string, ask: () => Promise<Verdict<T>>): Promise<Verdict<T>> {
    const entry = this.#known(key);
    if (entry && performance.now() < entry.freshUntil) return entry.verdict;
    const asked = this.#inFlight.get(key);
    if (asked) return asked;
    if (this.#inFlight.size >= this.#limits.mostInFlight) {
      // Whoever was granted before does not wait behind a crowd.
      const stale = this.#stale(entry);
      if (stale) return stale;
      throw new ReviewUnavailable('TooManyReviews');
    }
    const asking = this.#ask(key, ask, entry).finally(() => this.#inFlight.delete(key));
    this.#inFlight.set(key, asking);
    return asking;
  }

  async #ask(key: string, ask: () => Promise<Verdict<T>>, before: Entry<T> | undefined): Promise<Verdict<T>> {
    try {
      const verdict = await ask();
      const decidedAt = performance.now();
      const { grantedMs, refusedMs } = this.#limits;
      const [to, from] = verdict.isGranted ? [this.#granted, this.#refused] : [this.#refused, this.#granted];
      from.delete(key);
      to.set(key, { verdict, decidedAt, freshUntil: decidedAt + (verdict.isGranted ? grantedMs : refusedMs) });
      return verdict;
    } catch (error) {
      const stale = this.#stale(before);
      if (!before || !stale) throw error;
      before.freshUntil = Math.min(performance.now() + this.#limits.retryMs, before.decidedAt + this.#limits.staleMs);
      return stale;
    }
  }

  #known(key: string): Entry<T> | undefined {
    const entry = this.#granted.get(key) ?? this.#refused.get(key);
    if (entry && this.#hasExpired(entry)) {
      this.#granted.delete(key);
      return undefined;
    }
    return entry;
  }

  #hasExpired({ verdict }: Entry<T>): boolean {
    return verdict.isGranted && verdict.expiresAt !== undefined && verdict.expiresAt <= this.#now();
  }

  #stale(entry: Entry<T> | undefined): Verdict<T> | undefined {
    if (!entry?.verdict.isGranted || this.#hasExpired(entry)) return undefined;
    return performance.now() < entry.decidedAt + this.#limits.staleMs ? entry.verdict : undefined;
  }
}
