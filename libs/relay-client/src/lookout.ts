import { reconnectDelay } from './backoff.ts';
import type { Clock, Timer } from './clock.ts';

export interface LookoutOptions<T> {
  /** What there is, or why nothing can be said; must not reject. */
  readonly look: () => Promise<readonly T[] | string>;
  readonly textOf: (found: readonly T[]) => string;
  /** It is this now; not called when nothing has changed. */
  readonly onFound: (found: readonly T[]) => void;
  /** `reason` is undefined when there was nothing. */
  readonly onFailure: (failures: number, reason: string | undefined) => void;
  /** Between looks, once something is known. */
  readonly againMs: number;
  readonly clock: Clock;
  readonly random: () => number;
}

/** Looks now and then, 1 s to 30 s apart until something is known. What is known stays until there is something else. */
export class Lookout<T> {
  readonly #options: LookoutOptions<T>;
  #timer: Timer | undefined;
  #failures = 0;
  #known: string | undefined;
  #isStopped = false;
  #isLooking = false;
  /** Something may have changed since the look that is under way began. */
  #isStale = false;

  constructor(options: LookoutOptions<T>) {
    this.#options = options;
  }

  start(): void {
    void this.#look();
  }

  /** Something may be another: does not wait for the next look. */
  lookAgain(): void {
    if (this.#isStopped) return;
    this.#isStale = true;
    if (this.#isLooking) return;
    this.#timer?.cancel();
    void this.#look();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  async #look(): Promise<void> {
    const { look, textOf, onFound, onFailure, againMs, clock, random } = this.#options;
    [this.#isLooking, this.#isStale] = [true, false];
    const found = await look();
    this.#isLooking = false;
    if (this.#isStopped) return;
    if (typeof found === 'string' || found.length === 0) {
      onFailure(++this.#failures, typeof found === 'string' ? found : undefined);
    } else {
      this.#failures = 0;
      const text = textOf(found);
      if (text !== this.#known) onFound(found);
      this.#known = text;
    }
    const delay = this.#known === undefined ? reconnectDelay(this.#failures, random) : againMs;
    this.#timer = clock.after(this.#isStale ? 0 : delay, () => void this.#look());
  }
}
