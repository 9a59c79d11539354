import type { Socket } from 'node:net';

/** A client that takes less than this, while something waits for it, takes nothing to speak of. */
const LEAST_BYTES_PER_SECOND = 1024;

/** Bytes given to the socket that the kernel has not taken; part of a long write may be taken already. */
const waitingIn = (socket: Socket): number => {
  const handle = (socket as unknown as { readonly _handle?: { readonly writeQueueSize?: number } | null })._handle;
  return handle?.writeQueueSize ?? 0;
};

/**
 * What the kernel takes of a connection's bytes over time. A time limit for each write would end who takes a large one
 * steadily and spare who takes a byte of each.
 */
export class Progress {
  readonly #socket: Socket;
  /** Bytes given to the socket so far. */
  written = 0;
  /** What was taken, and when that was last enough. */
  #taken = 0;
  #since: number | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** To be asked about once a second. */
  isStuck(isFlowing: boolean, now: number, timeoutMs: number): boolean {
    const taken = this.written - waitingIn(this.#socket);
    const isEnough = taken - this.#taken >= (LEAST_BYTES_PER_SECOND * timeoutMs) / 1000;
    if (isFlowing || this.#since === undefined || isEnough) {
      this.#taken = taken;
      this.#since = isFlowing ? undefined : now;
      return false;
    }
    return now - this.#since > timeoutMs;
  }
}
