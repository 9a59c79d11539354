import type { Outbox } from './outbox.ts';
import type { Tallies } from './tallies.ts';

/** A connection that can be left unread for a while, so that TCP holds its sender back. */
export interface Holdable {
  pause(): void;
  resume(): void;
}

const TICK_MS = 10;
/**
 * A sender waits for full receivers at most 25 ticks at a stretch, and at most a quarter of the time. Ticks and not times: a
 * relay that gets no processor for a while must not take that for slowness of others.
 */
const CREDIT_TICKS = 25;
const CREDIT_PER_TICK = 0.25;
/** A receiver that has taken nothing for so many ticks is not waited for. */
const STALLED_TICKS = 10;

interface Wait {
  readonly outbox: Outbox;
  ticks: number;
}

interface Credit {
  ticks: number;
  at: number;
}

/**
 * Which senders are not read for a moment: those that sent more than their rate, and those whose receiver's queue fills. The
 * second kind makes short bursts lossless; it is bounded, so that a receiver that reads slowly cannot slow down others who
 * send to it: beyond the sender's credit, or when the receiver takes nothing at all, its oldest frames are dropped instead.
 */
export class Holds {
  readonly #waits = new Map<Holdable, Wait>();
  readonly #waiting = new Map<Outbox, Set<Holdable>>();
  /** Until when, in performance.now(). */
  readonly #rates = new Map<Holdable, number>();
  readonly #credits = new WeakMap<Holdable, Credit>();
  readonly #tallies: Tallies;
  #timer: NodeJS.Timeout | undefined;

  constructor(tallies: Tallies) {
    this.#tallies = tallies;
  }

  /** Not read for so many milliseconds. */
  holdForRate(sender: Holdable, forMs: number, now: number): void {
    this.#tallies.held.rate++;
    this.#pause(sender);
    this.#rates.set(sender, now + forMs);
  }

  /** Whether waiting for the outbox is worth it, and the sender has not waited too much already. */
  canWait(sender: Holdable, outbox: Outbox, now: number): boolean {
    return !outbox.isStalled && this.#creditOf(sender, now).ticks >= 1;
  }

  /** Not read until the outbox has room, or it is not worth waiting any longer. */
  holdForRoom(sender: Holdable, outbox: Outbox, now: number): void {
    if (this.#waits.has(sender) || !this.canWait(sender, outbox, now)) return;
    this.#tallies.held.wait++;
    this.#pause(sender);
    this.#waits.set(sender, { outbox, ticks: 0 });
    const waiting = this.#waiting.get(outbox);
    if (waiting !== undefined) return void waiting.add(sender);
    this.#waiting.set(outbox, new Set([sender]));
    outbox.onRoom = () => this.#onRoom(outbox);
  }

  /** The sender has ended. */
  forget(sender: Holdable): void {
    this.#forgetWait(sender);
    this.#rates.delete(sender);
  }

  #forgetWait(sender: Holdable): void {
    const outbox = this.#waits.get(sender)?.outbox;
    this.#waits.delete(sender);
    if (outbox !== undefined) this.#waiting.get(outbox)?.delete(sender);
  }

  #onRoom(outbox: Outbox): void {
    const waiting = this.#waiting.get(outbox) ?? [];
    this.#waiting.delete(outbox);
    const now = performance.now();
    for (const sender of waiting) this.#endWait(sender, now);
  }

  #pause(sender: Holdable): void {
    if (!this.#waits.has(sender) && !this.#rates.has(sender)) sender.pause();
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref();
  }

  #resume(sender: Holdable): void {
    if (!this.#waits.has(sender) && !this.#rates.has(sender)) sender.resume();
  }

  #endWait(sender: Holdable, now: number): void {
    const wait = this.#waits.get(sender);
    if (wait === undefined) return;
    this.#forgetWait(sender);
    const credit = this.#creditOf(sender, now);
    credit.ticks = Math.max(0, credit.ticks - wait.ticks);
    this.#resume(sender);
  }

  #creditOf(sender: Holdable, now: number): Credit {
    const credit = this.#credits.get(sender) ?? { ticks: CREDIT_TICKS, at: now };
    credit.ticks = Math.min(CREDIT_TICKS, credit.ticks + ((now - credit.at) / TICK_MS) * CREDIT_PER_TICK);
    credit.at = now;
    this.#credits.set(sender, credit);
    return credit;
  }

  #tick(): void {
    const now = performance.now();
    for (const [outbox, waiting] of this.#waiting) {
      if (waiting.size === 0) continue;
      outbox.ticksWithoutProgress++;
      if (outbox.ticksWithoutProgress > STALLED_TICKS) outbox.isStalled = true;
    }
    for (const [sender, wait] of this.#waits) {
      wait.ticks++;
      const left = (this.#credits.get(sender)?.ticks ?? 0) - wait.ticks;
      if (left < 0 || wait.outbox.isStalled) this.#endWait(sender, now);
    }
    for (const [sender, until] of this.#rates) {
      if (now < until) continue;
      this.#rates.delete(sender);
      this.#resume(sender);
    }
    if (this.#waits.size + this.#rates.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
