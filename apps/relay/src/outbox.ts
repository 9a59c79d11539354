import type { Socket } from 'node:net';

import { frameEnd, MAX_LINK_LENGTH } from '@unbounded/relay-protocol';

import { type Block, Lane, type Span } from './lane.ts';
import { type Holder, MAX_LINK_FRAME_BYTES, type Memory } from './memory.ts';
import { Progress } from './progress.ts';
import type { Tallies } from './tallies.ts';

/** What is the same for all outboxes of a kind. */
export interface OutboxShared {
  readonly memory: Memory;
  readonly tallies: Tallies;
  /** Bytes that wait for one connection at most; the oldest go first. */
  readonly queueBytes: number;
  /** Bytes in front of a frame's payload. */
  readonly headBytes: number;
  readonly queueAge: (ms: number) => void;
}

/** Room that bulk data cannot take: handshakes of WireGuard and packets of a keepalive's size. */
const URGENT_BYTES = 32 * 1024;
/** WireGuard's transport packet without data. */
const SMALL_PAYLOAD = 32;
/** Of its handshakes, by their first byte: initiation, response, cookie reply. Anything else that begins so is somebody's data. */
const HANDSHAKE_BYTES = [undefined, 148, 92, 64] as const;
/** How much longer than usual a queue may get while its senders wait. */
const BURST = 8;
const NOTHING = Buffer.alloc(0);

/**
 * What goes to one connection. While the kernel takes everything at once there is no queue: frames are copied from the
 * read buffer into a buffer of the pool, written, and the buffer is free again when the call returns. What the kernel does
 * not take keeps its buffer until it does; frames that come in the meantime wait in two lanes.
 */
export class Outbox implements Holder {
  readonly #socket: Socket;
  readonly #shared: OutboxShared;
  /** Segments of the current round, see round.ts. */
  firstSegment = -1;
  lastSegment = -1;
  roundBytes = 0;
  /** When the write began that the kernel has not taken yet; 0: none. */
  writingSince = 0;
  /** Whether nobody should wait for it, because it took nothing while somebody did; see holds.ts. */
  isStalled = false;
  ticksWithoutProgress = 0;
  /** Bytes of buffers, in queues and on their way into the kernel. */
  held = 0;
  readonly #progress: Progress;
  #inFlight: Buffer | undefined;
  #urgent: Lane | undefined;
  #bulk: Lane | undefined;
  #wasUrgent = false;
  /** Called once when a queue that was more than half full has become short, or the connection has ended. */
  onRoom: (() => void) | undefined;

  /** The next frames that are neither dropped nor reordered; they go before all that waits. */
  nextControl: (() => Buffer | undefined) | undefined;

  constructor(socket: Socket, shared: OutboxShared) {
    this.#socket = socket;
    this.#shared = shared;
    this.#progress = new Progress(socket);
  }

  get weight(): number {
    return this.#shared.queueBytes;
  }

  get canShed(): boolean {
    return this.#bulk?.isEmpty === false;
  }

  shed(): void {
    this.#shared.tallies.dropped.slow += this.#bulk?.shed() ?? 0;
  }

  /** Whether the kernel has taken next to nothing for so long, although something waited all the time. */
  isStuck(now: number, timeoutMs: number): boolean {
    return this.#progress.isStuck(this.isFlowing, now, timeoutMs);
  }

  get queued(): number {
    return (this.#bulk?.bytes ?? 0) + (this.#urgent?.bytes ?? 0);
  }

  /** Whether senders should wait a moment rather than lose frames. */
  get isFilling(): boolean {
    return (this.#bulk?.bytes ?? 0) * 2 > this.#shared.queueBytes;
  }

  /** Whether the kernel takes what is written at once. */
  get isFlowing(): boolean {
    return this.writingSince === 0;
  }

  /** Writes the first bytes of the buffer, which comes from the pool and goes back there. */
  write(buffer: Buffer, from: number, to: number, now: number): void {
    const socket = this.#socket;
    const { memory } = this.#shared;
    if (socket.destroyed) return memory.give(buffer);
    this.#progress.written += to - from;
    socket.write(buffer.subarray(from, to));
    if (socket.writableLength === 0) return memory.give(buffer); // all in the kernel: nobody refers to the bytes any more
    this.writingSince = now;
    this.#inFlight = buffer;
    memory.pin(this, buffer);
    // A write of nothing ends after the one before it; only those that wait pay for a callback.
    socket.write(NOTHING, () => this.#onTaken());
  }

  /** Frames from `start` to `end` of any buffer; copied. */
  send(bytes: Buffer, start: number, end: number, now: number): void {
    if (!this.isFlowing) return this.enqueue(bytes, { start, end }, false, now);
    const buffer = this.#shared.memory.take(end - start);
    buffer.set(bytes.subarray(start, end));
    this.write(buffer, 0, end - start, now);
  }

  /** Writes what `nextControl` has: now, or as soon as the kernel has taken what is being written. */
  sendControl(now: number): void {
    while (this.isFlowing) {
      const frames = this.nextControl?.();
      if (frames === undefined) return;
      this.send(frames, 0, frames.length, now);
    }
  }

  /** As `send` for many frames, in writes of at most one block; what the kernel does not take then waits, and can be dropped. */
  sendShort(bytes: Buffer, { start, end }: Span, now: number): void {
    let from = start;
    for (let at = start; at < end;) {
      const next = frameEnd(bytes, at, end, MAX_LINK_LENGTH);
      if (next - from > MAX_LINK_FRAME_BYTES) {
        this.send(bytes, from, at, now);
        from = at;
      }
      at = next;
    }
    this.send(bytes, from, end, now);
  }

  /**
   * Puts whole frames into the lanes, and counts what is lost by it. When their sender waits for the rest to be taken, none is
   * lost for the queue's length: it may get longer by a read of each such sender.
   */
  enqueue(bytes: Buffer, { start, end }: Span, senderWaits: boolean, now: number): void {
    const { tallies, queueBytes, memory } = this.#shared;
    const budget = senderWaits && !memory.isTight ? queueBytes * BURST : queueBytes;
    if (this.#socket.destroyed) return;
    const [urgent, bulk] = this.#lanes();
    for (let at = start; at < end;) {
      const next = frameEnd(bytes, at, end, MAX_LINK_LENGTH);
      const span = { start: at, end: next };
      const lost = this.#isUrgent(bytes, at, next)
        ? urgent.push(bytes, span, URGENT_BYTES, now)
        : bulk.push(bytes, span, budget, now);
      tallies.dropped.slow += lost; // not in one statement with push, which may itself count what others lose
      at = next;
    }
  }

  /** The connection has ended: nothing is held for it any more. */
  close(): void {
    this.#bulk?.clear();
    this.#urgent?.clear();
    this.#release(false);
    this.writingSince = 0;
    this.#room();
  }

  #isUrgent(bytes: Buffer, start: number, end: number): boolean {
    const payload = start + this.#shared.headBytes;
    const size = end - payload;
    return size <= SMALL_PAYLOAD || HANDSHAKE_BYTES[bytes[payload]!] === size;
  }

  #lanes(): readonly [Lane, Lane] {
    const { memory } = this.#shared;
    this.#urgent ??= new Lane(memory, this);
    this.#bulk ??= new Lane(memory, this);
    return [this.#urgent, this.#bulk];
  }

  /** @param isTaken the kernel has the bytes: else libuv holds them still, while a connection ends and after an error */
  #release(isTaken: boolean): void {
    if (this.#inFlight === undefined) return;
    const { memory } = this.#shared;
    memory.release(this, this.#inFlight);
    // Used again it would bring what is written to others.
    if (isTaken && !this.#socket.destroyed) memory.give(this.#inFlight);
    this.#inFlight = undefined;
  }

  #onTaken(): void {
    this.#release(true);
    this.writingSince = 0;
    if (this.#socket.destroyed) return;
    const now = performance.now();
    this.isStalled = false;
    this.ticksWithoutProgress = 0;
    this.sendControl(now);
    while (this.isFlowing) {
      const block = this.#next();
      if (block === undefined) break;
      this.#writeBlock(block, now);
    }
    if ((this.#bulk?.bytes ?? 0) * 4 < this.#shared.queueBytes) this.#room();
    if (this.queued === 0) this.#urgent = this.#bulk = undefined;
  }

  /** Urgent first, but by turns: who sends that without end must not keep others' data from ever going. */
  #next(): Block | undefined {
    const [urgent, bulk] = [this.#urgent, this.#bulk];
    const isBulk = this.#wasUrgent && bulk?.isEmpty === false;
    const block = isBulk ? bulk.take() : (urgent?.take() ?? bulk?.take());
    this.#wasUrgent = !isBulk;
    return block;
  }

  #writeBlock(block: Block, now: number): void {
    this.#shared.queueAge(now - block.since);
    this.#shared.memory.release(this, block.bytes);
    this.write(block.bytes, block.from, block.to, now);
  }

  #room(): void {
    const { onRoom } = this;
    this.onRoom = undefined;
    onRoom?.();
  }
}
