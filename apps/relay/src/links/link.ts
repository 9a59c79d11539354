import type { TLSSocket } from 'node:tls';

import {
  type BlockPool,
  decodeLink,
  encodeIdentity,
  encodeKeepalive,
  FORWARD_DESTINATION_AT,
  FORWARD_SENDER_AT,
  FRAME,
  FrameError,
  frameEnd,
  HEADER_BYTES,
  LENGTH_BYTES,
  LINK,
  type LinkMessage,
  MAX_LINK_LENGTH,
} from '@unbounded/relay-protocol';

import type { Directory, Entry } from '../directory.ts';
import { Intake } from '../intake.ts';
import { HEADROOM, READ_BYTES, type ReadSlab } from '../memory.ts';
import { Outbox, type OutboxShared } from '../outbox.ts';
import type { Round } from '../round.ts';
import type { Tallies } from '../tallies.ts';
import { PresenceUpdates } from './presence-updates.ts';

/** Both ends say that they are there this often, and end a link that was silent for three times as long. */
const KEEPALIVE_MS = 10_000;
const SILENCE_MS = 3 * KEEPALIVE_MS;
const WRITE_TIMEOUT_MS = 10_000;

export interface LinkContext {
  /** 16 bytes, of this process. */
  readonly id: Uint8Array;
  readonly slab: ReadSlab;
  readonly partials: BlockPool;
  readonly round: Round;
  readonly directory: Directory;
  readonly tallies: Tallies;
  readonly outboxes: OutboxShared;
}

export interface LinkEvents {
  /** Anything but forwarded packets. */
  onMessage(message: Exclude<LinkMessage, { kind: 'forward' }>): void;
  onClosed(): void;
}

/** One TLS connection to another replica, of either direction. Who dialled it announces its clients and sends packets. */
export class Link {
  readonly #context: LinkContext;
  readonly #socket: TLSSocket;
  readonly #events: LinkEvents;
  readonly outbox: Outbox;
  readonly #intake: Intake;
  readonly #presence = new PresenceUpdates();
  #lastReadAt = performance.now();
  #lastSentAt = 0;
  #isEnded = false;

  constructor(context: LinkContext, socket: TLSSocket, events: LinkEvents) {
    this.#context = context;
    this.#socket = socket;
    this.#events = events;
    this.outbox = new Outbox(socket, context.outboxes);
    this.outbox.nextControl = () => this.#presence.next();
    this.#intake = new Intake(context.slab, context.partials);
    socket.on('data', (chunk: Buffer) => {
      for (let at = 0; at < chunk.length; at += READ_BYTES) this.#onBytes(chunk.subarray(at, at + READ_BYTES));
    });
    socket.on('error', () => {});
    socket.on('close', () => this.end());
    this.send(encodeIdentity(context.id));
  }

  send(frame: Uint8Array): void {
    this.#lastSentAt = performance.now();
    this.outbox.send(Buffer.from(frame.buffer, frame.byteOffset, frame.length), 0, frame.length, this.#lastSentAt);
  }

  /** Sends whether these keys are registered here: as soon as the connection takes it, and whatever waits for it. */
  announce(entries: Iterable<Entry>): void {
    for (const entry of entries) this.#presence.add(entry);
    this.outbox.sendControl(performance.now());
  }

  check(now: number): void {
    if (now - this.#lastReadAt > SILENCE_MS || this.outbox.isStuck(now, WRITE_TIMEOUT_MS)) return this.end();
    if (now - this.#lastSentAt > KEEPALIVE_MS) this.send(encodeKeepalive());
  }

  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#socket.destroy();
    this.#intake.clear();
    this.outbox.close();
    this.#events.onClosed();
  }

  canWait(): boolean {
    return false;
  }

  /** Nobody waits for a receiver here: that would hold up all others of the replica. */
  onFilling(): void {}

  #onBytes(chunk: Buffer): void {
    if (this.#isEnded) return;
    const { slab, round } = this.#context;
    const now = performance.now();
    this.#lastReadAt = now;
    slab.target.set(chunk);
    const end = HEADROOM + chunk.length;
    let at = this.#intake.open(chunk.length);
    if (at < 0) return;
    for (;;) {
      const next = frameEnd(slab.bytes, at, end, MAX_LINK_LENGTH);
      if (next === 0) break;
      if (next < 0 || !this.#takeFrame(at, next)) return this.end();
      at = next;
    }
    this.#intake.keep(at, end, now);
    round.flush(now, this);
  }

  /** False: it is no frame of a link. */
  #takeFrame(at: number, next: number): boolean {
    const { bytes } = this.#context.slab;
    const type = bytes[at + LENGTH_BYTES];
    if (type === FRAME.keepalive) return true;
    if (
      type === FRAME.link &&
      bytes[at + HEADER_BYTES] === LINK.forward &&
      next - at > FORWARD_SENDER_AT + HEADER_BYTES
    )
      return this.#deliver(at, next);
    try {
      const message = decodeLink(Uint8Array.prototype.slice.call(bytes, at, next));
      if (message !== undefined && message.kind !== 'forward') this.#events.onMessage(message);
      return true;
    } catch (error) {
      if (error instanceof FrameError) return false;
      throw error;
    }
  }

  /** To a client here or to nobody: what came over a link never goes over another one. */
  #deliver(at: number, next: number): boolean {
    const { slab, directory, round, tallies } = this.#context;
    const entry = directory.find(slab.view, at + FORWARD_DESTINATION_AT);
    if (entry?.client === undefined) {
      tallies.dropped.stray++;
      return true;
    }
    // The Data frame's head takes the place of the end of the destination's key, in front of the sender's.
    const start = at + FORWARD_SENDER_AT - HEADER_BYTES;
    slab.view.setUint32(start, next - start - LENGTH_BYTES);
    slab.view.setUint8(start + LENGTH_BYTES, FRAME.data);
    round.add(entry.client.outbox, start, next);
    tallies.frames++;
    tallies.bytes += next - start;
    return true;
  }
}
