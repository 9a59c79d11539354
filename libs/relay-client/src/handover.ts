import type { Clock, Timer } from './clock.ts';

/** A packet waits no longer than this. */
const MOST_MS = 2000;
const MOST_BYTES = 1024 * 1024;

/**
 * Keeps the order when packets that went one way go another from now on: holds them until the first way has delivered
 * those before them. What is too much goes at once: order is a kindness, WireGuard does without.
 */
export class Handover {
  readonly #held: (() => void)[] = [];
  readonly #onDone: () => void;
  readonly #timer: Timer;
  #bytes = 0;
  isDone = false;

  /** `barrier` calls back when the first way has delivered, which may be at once. */
  constructor(clock: Clock, barrier: (done: () => void) => void, onDone: () => void) {
    this.#onDone = onDone;
    this.#timer = clock.after(MOST_MS, () => this.finish());
    barrier(() => this.finish());
  }

  /** Calls `send` when it is its turn, which may be at once. */
  add(bytes: number, send: () => void): void {
    if (this.isDone) return send();
    this.#held.push(send);
    this.#bytes += bytes;
    if (this.#bytes > MOST_BYTES) this.finish();
  }

  finish(): void {
    if (this.isDone) return;
    this.isDone = true;
    this.#timer.cancel();
    for (const send of this.#held.splice(0)) send();
    this.#onDone();
  }
}
