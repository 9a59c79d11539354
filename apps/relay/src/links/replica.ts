import {
  DATA_HEAD_BYTES,
  FORWARD_DESTINATION_AT,
  FORWARD_HEAD_BYTES,
  FORWARD_SENDER_AT,
  HEADER_BYTES,
  KEY_BYTES,
  writeForwardHead,
} from '@unbounded/relay-protocol';

import { type Memory, READ_BYTES } from '../memory.ts';
import type { Outbox } from '../outbox.ts';
import type { Gatherer, Round, RoundSender } from '../round.ts';

/** A Data frame in the read buffer, and who sends it. */
export interface Departure {
  readonly at: number;
  readonly end: number;
  readonly sender: Uint8Array;
}

/** Another replica of this relay: what is registered there (it says so by its link to us), and our link to it. */
export class Replica implements Gatherer {
  readonly id: string;
  /** Of our own link to it, while that is up. */
  outbox: Outbox | undefined;
  readonly #memory: Memory;
  readonly #round: Round;
  #stage: Buffer | undefined;
  #staged = 0;

  constructor(id: string, memory: Memory, round: Round) {
    this.id = id;
    this.#memory = memory;
    this.#round = round;
  }

  get isReachable(): boolean {
    return this.outbox !== undefined;
  }

  /** Sends a client's Data frame there; with the others of the round in one write. */
  forward(source: Buffer, { at, end, sender }: Departure, now: number): void {
    const payloadBytes = end - at - DATA_HEAD_BYTES;
    const size = FORWARD_HEAD_BYTES + payloadBytes;
    if (this.#stage !== undefined && this.#staged + size > this.#stage.length) this.#write(now, false);
    if (this.#stage === undefined) {
      this.#stage = this.#memory.take(READ_BYTES);
      this.#round.join(this);
    }
    const stage = this.#stage;
    writeForwardHead(stage, this.#staged, payloadBytes);
    const keyAt = at + HEADER_BYTES;
    stage.set(source.subarray(keyAt, keyAt + KEY_BYTES), this.#staged + FORWARD_DESTINATION_AT);
    stage.set(sender, this.#staged + FORWARD_SENDER_AT);
    stage.set(source.subarray(at + DATA_HEAD_BYTES, end), this.#staged + FORWARD_HEAD_BYTES);
    this.#staged += size;
  }

  flush(now: number, sender: RoundSender): void {
    this.#write(now, this.outbox !== undefined && sender.canWait(this.outbox, now));
    if (this.outbox?.isFilling) sender.onFilling(this.outbox, now);
  }

  #write(now: number, senderWaits: boolean): void {
    const stage = this.#stage;
    if (stage === undefined) return;
    const { outbox } = this;
    if (outbox?.isFlowing && !this.#memory.isTight) outbox.write(stage, 0, this.#staged, now);
    else {
      if (outbox?.isFlowing) outbox.sendShort(stage, { start: 0, end: this.#staged }, now);
      else outbox?.enqueue(stage, { start: 0, end: this.#staged }, senderWaits, now);
      this.#memory.give(stage);
    }
    this.#stage = undefined;
    this.#staged = 0;
  }
}
