import { type Outbox } from './outbox.ts';
import { type Tallies } from './tallies.ts';

/** A connection that can be left unread for a while, so that TCP holds its sender back. */
export interface Holdable {
  pause(): void;
  resume(): void;
}

const TICK_MS = 10;
/** A sender waits for full receivers at most this long at a stretch, and at most a quarter of the time. */
const CREDIT_MS = 250;
const CREDIT_PER_MS = 0.25;
/** A wait shorter than this is not worth it. */
const LEAST_CREDIT_MS = TICK_MS;
/** A receiver that has taken nothing for this long is not waited for. */
const STALLED_MS = 100;

interface Hold {
  readonly reason: 'rate' | 'wait';
  readonly since: number;
  readonly until: number;
  readonly outbox: Outbox | undefined;
}

interface Credit {
  ms: number;
  at: number;
}

/**
 * Which senders are not read for a moment: those that sent more than their rate, and those whose receiver's queue fills. The
 * second kind makes short bursts lossless; it is bounded, so that a receiver that reads slowly cannot slow down others who
 * send to it: beyond the sender's credit, or when the receiver takes nothing at all, its oldest frames are dropped instead.
 */
export class Holds {
  readonly #held = new Map<Holdable, Hold>();
  readonly #credits = new WeakMap<Holdable, Credit>();
  readonly #tallies: Tallies;
  #timer: NodeJS.Timeout | undefined;

  constructor(tallies: Tallies) {
    this.#tallies = tallies;
  }

  /** Not read for so many milliseconds. */
  holdForRate(sender: Holdable, forMs: number, now: number): void {
    this.#tallies.held.rate++;
    this.#hold(sender, { reason: 'rate', since: now, until: now + forMs, outbox: undefined });
  }

  /** Not read until the outbox has room, or it is not worth waiting any longer. */
  holdForRoom(sender: Holdable, outbox: Outbox, now: number): void {
    if (this.#held.has(sender) || isStalled(outbox, now)) return;
    const credit = this.#creditOf(sender, now);
    if (credit.ms < LEAST_CREDIT_MS) return;
    this.#tallies.held.wait++;
    this.#hold(sender, { reason: 'wait', since: now, until: now + credit.ms, outbox });
    const before = outbox.onRoom;
    outbox.onRoom = () => {
      before?.();
      if (this.#held.get(sender)?.outbox === outbox) this.#release(sender, performance.now());
    };
  }

  /** The sender has ended. */
  forget(sender: Holdable): void {
    this.#held.delete(sender);
  }

  #hold(sender: Holdable, hold: Hold): void {
    if (!this.#held.has(sender)) sender.pause();
    this.#held.set(sender, hold);
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref();
  }

  #release(sender: Holdable, now: number): void {
    const hold = this.#held.get(sender);
    if (hold === undefined) return;
    this.#held.delete(sender);
    if (hold.reason === 'wait') this.#creditOf(sender, now).ms -= now - hold.since;
    sender.resume();
  }

  #creditOf(sender: Holdable, now: number): Credit {
    const credit = this.#credits.get(sender) ?? { ms: CREDIT_MS, at: now };
    credit.ms = Math.min(CREDIT_MS, credit.ms + (now - credit.at) * CREDIT_PER_MS);
    credit.at = now;
    this.#credits.set(sender, credit);
    return credit;
  }

  #tick(): void {
    const now = performance.now();
    for (const [sender, { until, outbox }] of this.#held)
      if (now >= until || (outbox !== undefined && isStalled(outbox, now))) this.#release(sender, now);
    if (this.#held.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

const isStalled = (outbox: Outbox, now: number): boolean =>
  !outbox.isFlowing && now - Math.max(outbox.writingSince, outbox.progressAt) > STALLED_MS;
