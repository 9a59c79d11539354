import { DATA_HEAD_BYTES, FRAME, LENGTH_BYTES, HEADER_BYTES } from '@unbounded/relay-protocol';

import type { Clock } from './clock.ts';
import { Lane } from './lane.ts';
import type { Tallies } from './tallies.ts';

/** Bytes that are gathered for one write: as much as Node hands to the kernel at once without growing buffers. */
const BATCH_BYTES = 65_536;
/** Room that bulk data cannot take. */
const URGENT_BYTES = 32 * 1024;
/** A WireGuard packet of type 1 to 3 belongs to a handshake (initiation, response, cookie). */
const LAST_HANDSHAKE_TYPE = 3;

/** What is used of a socket. */
interface Wire {
  readonly writableLength: number;
  write(bytes: Uint8Array, done: () => void): unknown;
}

export interface OutboxOptions {
  readonly wire: Wire;
  /** Bytes that wait at most when the relay does not take them; beyond it the oldest go. */
  readonly budgetBytes: number;
  readonly tallies: Tallies;
  readonly clock: Clock;
}

/**
 * What goes to a relay. Frames of one turn of the event loop are one write. What the kernel does not take at once stays
 * with the socket, at most one batch; frames that come in the meantime wait in two lanes, handshakes before the others.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #urgent: Lane;
  readonly #bulk: Lane;
  #batch: Buffer | undefined;
  #filled = 0;
  #flushing: NodeJS.Immediate | undefined;
  #isClosed = false;
  /** When the write began that the kernel has not taken yet; undefined: none. */
  writingSince: number | undefined;

  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#urgent = new Lane(URGENT_BYTES);
    this.#bulk = new Lane(options.budgetBytes);
  }

  /** Bytes that wait. */
  get queued(): number {
    return this.#filled + this.#urgent.bytes + this.#bulk.bytes + this.#options.wire.writableLength;
  }

  /** A Data frame; both are copied. */
  sendData(key: Uint8Array, payload: Uint8Array): void {
    if (this.#isClosed) return;
    const { tallies } = this.#options;
    const size = DATA_HEAD_BYTES + payload.length;
    tallies.sentFrames++;
    tallies.sentBytes += size;
    if (this.#makeRoom(size)) {
      writeData(this.#batch!, this.#filled, key, payload);
      this.#filled += size;
      return;
    }
    const frame = Buffer.allocUnsafeSlow(size);
    writeData(frame, 0, key, payload);
    const type = payload[0] ?? 0;
    const lane = type >= 1 && type <= LAST_HANDSHAKE_TYPE ? this.#urgent : this.#bulk;
    tallies.dropped.slowRelay += lane.push(frame);
  }

  /** Any other frame, or several in one. Before data that waits, or, with `isLast`, after it. */
  sendControl(frame: Uint8Array, isLast = false): void {
    if (this.#isClosed) return;
    if (this.#makeRoom(frame.length)) {
      this.#batch!.set(frame, this.#filled);
      this.#filled += frame.length;
    } else this.#options.tallies.dropped.slowRelay += (isLast ? this.#bulk : this.#urgent).push(frame);
  }

  /** Gives to the socket what has been gathered. */
  flush(): void {
    clearImmediate(this.#flushing);
    this.#flushing = undefined;
    if (this.#isClosed || this.#filled === 0 || this.writingSince !== undefined) return;
    this.#write();
  }

  close(): void {
    this.#isClosed = true;
    clearImmediate(this.#flushing);
    this.#batch = undefined;
    this.#filled = 0;
    this.#urgent.clear();
    this.#bulk.clear();
  }

  /** Whether so many bytes may be added to the batch now; they are written soon. */
  #makeRoom(size: number): boolean {
    if (this.#filled > 0 && this.#filled + size > BATCH_BYTES) this.flush();
    if (this.writingSince !== undefined) return false;
    if (this.#batch === undefined || this.#batch.length < size)
      this.#batch = Buffer.allocUnsafeSlow(Math.max(BATCH_BYTES, size));
    this.#flushing ??= setImmediate(() => this.flush());
    return true;
  }

  #write(): void {
    const { wire, clock } = this.#options;
    const bytes = this.#batch!.subarray(0, this.#filled);
    this.#filled = 0;
    wire.write(bytes, this.#onWritten);
    if (wire.writableLength === 0) return; // the kernel has it, and the batch is free again
    this.#batch = undefined;
    this.writingSince = clock.now();
  }

  readonly #onWritten = (): void => {
    // Also called for writes that were done at once, while a later one still waits.
    if (this.#isClosed || this.writingSince === undefined || this.#options.wire.writableLength > 0) return;
    this.writingSince = undefined;
    this.#refill();
  };

  /** Writes what waits, until the kernel takes no more. */
  #refill(): void {
    while (this.writingSince === undefined) {
      const lane = this.#urgent.bytes > 0 ? this.#urgent : this.#bulk;
      if (lane.bytes === 0) return this.flush();
      const frame = lane.shift()!;
      if (this.#filled > 0 && this.#filled + frame.length > BATCH_BYTES) this.#write();
      if (this.writingSince !== undefined) return lane.unshift(frame);
      if (this.#batch === undefined || this.#batch.length < frame.length)
        this.#batch = Buffer.allocUnsafeSlow(Math.max(BATCH_BYTES, frame.length));
      this.#batch.set(frame, this.#filled);
      this.#filled += frame.length;
    }
  }
}

const writeData = (target: Buffer, at: number, key: Uint8Array, payload: Uint8Array): void => {
  target.writeUInt32BE(DATA_HEAD_BYTES - LENGTH_BYTES + payload.length, at);
  target[at + LENGTH_BYTES] = FRAME.data;
  target.set(key, at + HEADER_BYTES);
  target.set(payload, at + DATA_HEAD_BYTES);
};
