import type { WebSocket } from 'ws';

/** What is given to a connection at once: encryption and the kernel copy it, for each client. */
const FRAGMENT_BYTES = 64 * 1024;

/**
 * Sends messages to one client, a fragment (RFC 6455 5.4) after the other, each when the one before was taken. So a client
 * costs a fragment beside the messages, which all share; progress is seen within a long message; and pings overtake.
 */
export class PacedSender {
  /** Handed in and not yet taken by the kernel. */
  unsentBytes = 0;
  sentBytes = 0;
  /** When the kernel last took something. */
  progressAt: number;
  readonly #socket: WebSocket;
  readonly #now: () => number;
  readonly #queue: Buffer[] = [];
  #offset = 0;
  #isSending = false;

  constructor(socket: WebSocket, now: () => number) {
    this.#socket = socket;
    this.#now = now;
    this.progressAt = now();
  }

  send(message: Buffer): void {
    if (this.unsentBytes === 0) this.progressAt = this.#now(); // it has had nothing to take
    this.#queue.push(message);
    this.unsentBytes += message.length;
    if (!this.#isSending) this.#next();
  }

  #next(): void {
    const message = this.#queue[0];
    this.#isSending = message !== undefined && this.#socket.readyState === this.#socket.OPEN;
    if (message === undefined || !this.#isSending) return;
    const fragment = message.subarray(this.#offset, this.#offset + FRAGMENT_BYTES);
    this.#offset += fragment.length;
    const fin = this.#offset >= message.length;
    if (fin) {
      this.#queue.shift();
      this.#offset = 0;
    }
    this.#socket.send(fragment, { binary: false, fin }, (error) => {
      if (error) return; // 'close' follows
      this.unsentBytes -= fragment.length;
      this.sentBytes += fragment.length;
      this.progressAt = this.#now();
      this.#next();
    });
  }
}
