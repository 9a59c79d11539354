import { backoffDelay, type BackoffOptions } from './backoff.ts';

/** Told about what happens to keys: for metrics. */
export interface QueueObserver {
  added?(depth: number): void;
  /** @param waitedMs since it was added */
  taken?(depth: number, waitedMs: number): void;
  /** @param workedMs since it was taken */
  done?(workedMs: number): void;
  retried?(): void;
}

export interface WorkQueueOptions {
  readonly backoff?: BackoffOptions;
  readonly observer?: QueueObserver;
}

/** The first retry is quick, because most failures are conflicts that a second look solves. */
const DEFAULT_BACKOFF: BackoffOptions = { baseMs: 10, maxMs: 60_000 };

/**
 * Keys that wait to be worked on. A key waits at most once, is never handed out twice at the same time, and if it is
 * added while being worked on it waits again afterwards.
 */
export class WorkQueue {
  readonly #backoff: BackoffOptions;
  readonly #observer: QueueObserver;
  /** With when each was added, milliseconds (performance.now). */
  readonly #waiting = new Map<string, number>();
  /** With when each was taken. */
  readonly #working = new Map<string, number>();
  readonly #addedWhileWorking = new Set<string>();
  readonly #delayed = new Map<string, { readonly dueMs: number; readonly timer: NodeJS.Timeout }>();
  readonly #failures = new Map<string, number>();
  readonly #takers: ((key: string | undefined) => void)[] = [];
  #isClosed = false;

  constructor({ backoff = DEFAULT_BACKOFF, observer = {} }: WorkQueueOptions = {}) {
    this.#backoff = backoff;
    this.#observer = observer;
  }

  /** Keys that wait now; delayed ones and those being worked on do not count. */
  get depth(): number {
    return this.#waiting.size;
  }

  add(key: string): void {
    if (this.#isClosed || this.#waiting.has(key)) return;
    if (this.#working.has(key)) {
      this.#addedWhileWorking.add(key);
      return;
    }
    this.#waiting.set(key, performance.now());
    this.#observer.added?.(this.depth);
    this.#handOut();
  }

  /** If the key is delayed already, the earlier time holds. */
  addAfter(key: string, delayMs: number): void {
    if (this.#isClosed) return;
    if (delayMs <= 0) return this.add(key);
    const dueMs = performance.now() + delayMs;
    const delayed = this.#delayed.get(key);
    if (delayed && delayed.dueMs <= dueMs) return;
    if (delayed) clearTimeout(delayed.timer);
    const timer = setTimeout(() => {
      this.#delayed.delete(key);
      this.add(key);
    }, delayMs);
    this.#delayed.set(key, { dueMs, timer });
  }

  /** Comes back after a delay that grows with every failure since the last {@link forget}. */
  retry(key: string): void {
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, failures);
    this.#observer.retried?.();
    this.addAfter(key, backoffDelay(failures, this.#backoff));
  }

  /** The key succeeded: its next failure is its first. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /** The next key, when there is one; undefined when the queue is closed. Every taken key needs a {@link done}. */
  take(): Promise<string | undefined> {
    if (this.#isClosed) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      this.#takers.push(resolve);
      this.#handOut();
    });
  }

  done(key: string): void {
    const takenMs = this.#working.get(key);
    if (takenMs !== undefined) this.#observer.done?.(performance.now() - takenMs);
    this.#working.delete(key);
    if (this.#addedWhileWorking.delete(key)) this.add(key);
  }

  /** Nothing is handed out any more; what waits is dropped. */
  close(): void {
    this.#isClosed = true;
    for (const { timer } of this.#delayed.values()) clearTimeout(timer);
    this.#delayed.clear();
    this.#waiting.clear();
    for (const taker of this.#takers.splice(0)) taker(undefined);
  }

  #handOut(): void {
    while (this.#takers.length > 0) {
      const [first] = this.#waiting;
      if (!first) return;
      const [key, addedMs] = first;
      const nowMs = performance.now();
      this.#waiting.delete(key);
      this.#working.set(key, nowMs);
      this.#observer.taken?.(this.depth, nowMs - addedMs);
      this.#takers.shift()!(key);
    }
  }
}
