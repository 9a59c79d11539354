/** A budget: so much at once, and so much over time. */
export class Tokens {
  readonly #burst: number;
  readonly #perMs: number;
  #left: number;
  #at: number;

  constructor(burst: number, perMs: number, now: number) {
    this.#burst = burst;
    this.#perMs = perMs;
    this.#left = burst;
    this.#at = now;
  }

  /** Whether there may be one more now. */
  take(now: number): boolean {
    this.#refill(now);
    if (this.#left < 1) return false;
    this.#left--;
    return true;
  }

  /** Spends what has come already. Returns the milliseconds until that is paid for; 0: it is. */
  spend(count: number, now: number): number {
    this.#refill(now);
    this.#left -= count;
    return Math.max(0, -this.#left / this.#perMs);
  }

  #refill(now: number): void {
    this.#left = Math.min(this.#burst, this.#left + (now - this.#at) * this.#perMs);
    this.#at = now;
  }
}

/** Of PeerGone frames to one client. */
export const peerGoneTokens = (now: number): Tokens => new Tokens(3, 1 / 1000, now);

/** Of pings that are answered: a client sends one every some seconds. */
export const pingTokens = (now: number): Tokens => new Tokens(16, 10 / 1000, now);

/** A client may send this much of a second's rate at once. */
const RATE_BURST_MS = 250;

/** Of the bytes of one client; undefined: there is no limit. */
export const rateTokens = (bytesPerSecond: number, now: number): Tokens | undefined => {
  const perMs = bytesPerSecond / 1000;
  return perMs > 0 ? new Tokens(perMs * RATE_BURST_MS, perMs, now) : undefined;
};
