import { encodeExtension, encodeKeepalive, KEEPALIVE_MS, PING_BYTES } from '@unbounded/relay-protocol';

import type { Clock, Timer } from './clock.ts';

/** Silence after which a relay that answers pings is taken for dead: three pings. */
const SILENCE_MS = 75_000;
/** A write that the kernel has not taken for so long will not be taken. */
const STALLED_WRITE_MS = 30_000;
const SHORTEST_KEEPALIVE_MS = 1000;
const MOST_PINGS = 16;

export interface LivenessOptions {
  readonly clock: Clock;
  /** With `isLast` it goes after all data that waits. */
  readonly send: (frame: Uint8Array, isLast: boolean) => void;
  /** When the write began that the kernel has not taken yet. */
  readonly writingSince: () => number | undefined;
  readonly onDead: (reason: 'silent' | 'stalled', message: string) => void;
}

interface Ping {
  readonly sentAt: number;
  readonly done: (() => void) | undefined;
}

/** Keeps a connection alive, and finds out when it is not. */
export class Liveness {
  readonly #options: LivenessOptions;
  readonly #pings = new Map<bigint, Ping>();
  #nextPing = 1n;
  #keepaliveMs = KEEPALIVE_MS;
  #keepalive: Timer | undefined;
  #silence: Timer | undefined;
  #lastReadAt: number;
  #hasPings = false;
  #isStopped = false;
  /** Of the last ping that was answered; undefined: none yet. */
  rttMs: number | undefined;

  constructor(options: LivenessOptions) {
    this.#options = options;
    this.#lastReadAt = options.clock.now();
  }

  /** From now on keepalives go out. */
  start(): void {
    if (this.#keepalive === undefined) this.#schedule();
  }

  /** The relay answers pings. */
  usePings(): void {
    if (this.#hasPings) return;
    this.#hasPings = true;
    this.#watchSilence(SILENCE_MS);
  }

  /** How often the relay wants to hear something. */
  setKeepalive(ms: number): void {
    this.#keepaliveMs = Math.min(KEEPALIVE_MS, Math.max(SHORTEST_KEEPALIVE_MS, ms));
    if (this.#hasPings) this.#ping(undefined); // the round trip is worth knowing at once
    this.#schedule();
  }

  onRead(): void {
    this.#lastReadAt = this.#options.clock.now();
  }

  onPong(data: Uint8Array): void {
    const id = Buffer.from(data.buffer, data.byteOffset, PING_BYTES).readBigUInt64BE();
    const ping = this.#pings.get(id);
    if (ping === undefined) return;
    this.#pings.delete(id);
    this.rttMs = this.#options.clock.now() - ping.sentAt;
    ping.done?.();
  }

  /** Calls `done` when the relay has taken what was sent before; at once when it cannot tell. */
  barrier(done: () => void): void {
    if (this.#isStopped || !this.#hasPings) done();
    else this.#ping(done);
  }

  stop(): void {
    this.#isStopped = true;
    this.#keepalive?.cancel();
    this.#silence?.cancel();
    const pings = [...this.#pings.values()];
    this.#pings.clear();
    for (const { done } of pings) done?.();
  }

  #schedule(): void {
    this.#keepalive?.cancel();
    if (this.#isStopped) return;
    this.#keepalive = this.#options.clock.after(this.#keepaliveMs, () => this.#onKeepalive());
  }

  #onKeepalive(): void {
    const { send, writingSince, onDead, clock } = this.#options;
    if (clock.now() - (writingSince() ?? clock.now()) > STALLED_WRITE_MS)
      return onDead('stalled', `the relay has taken nothing for more than ${STALLED_WRITE_MS} ms`);
    if (this.#hasPings) this.#ping(undefined);
    else send(encodeKeepalive(), false);
    this.#schedule();
  }

  #ping(done: (() => void) | undefined): void {
    const id = this.#nextPing++;
    const data = Buffer.alloc(PING_BYTES);
    data.writeBigUInt64BE(id);
    this.#pings.set(id, { sentAt: this.#options.clock.now(), done });
    this.#options.send(encodeExtension({ kind: 'ping', data }), done !== undefined);
    if (this.#pings.size <= MOST_PINGS) return;
    const [oldest, ping] = this.#pings.entries().next().value!;
    this.#pings.delete(oldest);
    ping.done?.();
  }

  #watchSilence(ms: number): void {
    const { clock, onDead } = this.#options;
    this.#silence = clock.after(ms, () => {
      const silentMs = clock.now() - this.#lastReadAt;
      if (silentMs < SILENCE_MS) this.#watchSilence(SILENCE_MS - silentMs);
      else onDead('silent', `the relay answers pings, but not for ${SILENCE_MS} ms`);
    });
  }
}
