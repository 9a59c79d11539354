import { DATA_HEAD_BYTES } from '@unbounded/relay-protocol';

import { HEADROOM, MAX_LINK_FRAME_BYTES, type Memory, READ_BYTES, type ReadSlab } from './memory.ts';
import type { Outbox } from './outbox.ts';

/** A segment has a frame at least, and a frame a key. */
const MOST_SEGMENTS = Math.ceil((HEADROOM + READ_BYTES) / DATA_HEAD_BYTES);

/** Who sent what a round is made of. */
export interface RoundSender {
  /** Whether it would wait for that outbox to have room. */
  canWait(outbox: Outbox, now: number): boolean;
  /** That outbox fills: now it is to wait. */
  onFilling(outbox: Outbox, now: number): void;
}

/** Gathers frames of a round by itself, and is asked to write them at its end. */
export interface Gatherer {
  flush(now: number, sender: RoundSender): void;
}

/**
 * What one read gives to whom: for every outbox a list of segments of the read buffer. At the end of the round each outbox
 * gets one write, however many frames and senders' turns there were. The lists live in three arrays, so a round allocates
 * nothing.
 */
export class Round {
  readonly #slab: ReadSlab;
  readonly #memory: Memory;
  readonly #starts = new Int32Array(MOST_SEGMENTS);
  readonly #ends = new Int32Array(MOST_SEGMENTS);
  readonly #next = new Int32Array(MOST_SEGMENTS);
  #count = 0;
  readonly #outboxes: Outbox[] = [];
  readonly #gatherers: Gatherer[] = [];

  constructor(slab: ReadSlab, memory: Memory) {
    this.#slab = slab;
    this.#memory = memory;
  }

  /** Frames from `start` to `end` of the read buffer go to that outbox. */
  add(outbox: Outbox, start: number, end: number): void {
    const segment = this.#count++;
    this.#starts[segment] = start;
    this.#ends[segment] = end;
    this.#next[segment] = -1;
    if (outbox.firstSegment < 0) {
      outbox.firstSegment = segment;
      this.#outboxes.push(outbox);
    } else this.#next[outbox.lastSegment] = segment;
    outbox.lastSegment = segment;
    outbox.roundBytes += end - start;
  }

  /** At the end of this round it is flushed. */
  join(gatherer: Gatherer): void {
    this.#gatherers.push(gatherer);
  }

  /** Writes, or puts into queues, what the round has gathered. */
  flush(now: number, sender: RoundSender): void {
    for (let index = 0; index < this.#outboxes.length; index++) {
      const outbox = this.#outboxes[index]!;
      if (outbox.isFlowing) this.#write(outbox, now);
      else {
        this.#enqueue(outbox, sender.canWait(outbox, now), now);
        if (outbox.isFilling) sender.onFilling(outbox, now);
      }
      outbox.firstSegment = -1;
      outbox.lastSegment = -1;
      outbox.roundBytes = 0;
    }
    this.#outboxes.length = 0;
    this.#count = 0;
    if (this.#gatherers.length === 0) return;
    for (const gatherer of this.#gatherers) gatherer.flush(now, sender);
    this.#gatherers.length = 0;
  }

  #write(outbox: Outbox, now: number): void {
    // What the kernel does not take of a write cannot be dropped: under pressure writes are short.
    if (this.#memory.isTight && outbox.roundBytes > MAX_LINK_FRAME_BYTES) return this.#writeShort(outbox, now);
    const buffer = this.#memory.take(outbox.roundBytes);
    const { bytes } = this.#slab;
    let filled = 0;
    for (let segment = outbox.firstSegment; segment >= 0; segment = this.#next[segment]!) {
      const start = this.#starts[segment]!;
      const end = this.#ends[segment]!;
      buffer.set(bytes.subarray(start, end), filled);
      filled += end - start;
    }
    outbox.write(buffer, 0, filled, now);
  }

  #writeShort(outbox: Outbox, now: number): void {
    for (let segment = outbox.firstSegment; segment >= 0; segment = this.#next[segment]!)
      outbox.sendShort(this.#slab.bytes, { start: this.#starts[segment]!, end: this.#ends[segment]! }, now);
  }

  #enqueue(outbox: Outbox, senderWaits: boolean, now: number): void {
    for (let segment = outbox.firstSegment; segment >= 0; segment = this.#next[segment]!) {
      const span = { start: this.#starts[segment]!, end: this.#ends[segment]! };
      outbox.enqueue(this.#slab.bytes, span, senderWaits, now);
    }
  }
}
