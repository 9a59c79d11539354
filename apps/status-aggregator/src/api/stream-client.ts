import type { WebSocket } from 'ws';

import { includes } from '../view/position.ts';
import type { DisconnectReason } from './edge-metrics.ts';
import { PacedSender } from './paced-sender.ts';
import type { Admission } from './stream-admission.ts';
import { MOST_MESSAGE_BYTES, MOST_MESSAGES, type StreamLimits } from './stream.limits.ts';

const POLICY_VIOLATION = 1008;

/** One client of the live view: what it was sent, and whether it still takes it. */
export class StreamClient {
  readonly admission: Admission;
  /** Where the client is; undefined: it has been sent nothing yet. */
  position: string | undefined;
  recheckAt: number;
  readonly #socket: WebSocket;
  readonly #sender: PacedSender;
  readonly #limits: StreamLimits;
  readonly #now: () => number;
  /** Of the first messages: a view may be larger than what a client may have unsent later. */
  #firstBytes = 0;
  #pingAt: number;
  #pongAt: number;
  #messages = 0;
  #reason: DisconnectReason = 'client';

  /** @param now milliseconds in which the program ran */
  constructor(socket: WebSocket, admission: Admission, limits: StreamLimits, now: () => number) {
    this.admission = admission;
    this.#socket = socket;
    this.#sender = new PacedSender(socket, now);
    this.#limits = limits;
    this.#now = now;
    this.recheckAt = performance.now() + limits.recheckMs;
    this.#pongAt = now();
    this.#pingAt = this.#pongAt + limits.pingMs;
    socket.on('pong', () => (this.#pongAt = now()));
    socket.on('ping', () => {
      // Answered by ws: a client that does not read must not have answers pile up.
      if (socket.bufferedAmount > limits.bufferedBytes) this.terminate('slow');
    });
    socket.on('error', () => {}); // 'close' follows
    socket.on('message', (data: Buffer) => {
      if (data.length > MOST_MESSAGE_BYTES || ++this.#messages > MOST_MESSAGES) {
        this.close(POLICY_VIOLATION, 'this stream takes no messages', 'policy');
      }
    });
  }

  get isOpen(): boolean {
    return this.#socket.readyState === this.#socket.OPEN;
  }

  /** Why it was disconnected. */
  get reason(): DisconnectReason {
    return this.#reason;
  }

  /** The view, or the updates that it missed. */
  begin(position: string, messages: readonly Buffer[]): void {
    for (const message of messages) this.#sender.send(message);
    this.#firstBytes = this.#sender.sentBytes + this.#sender.unsentBytes;
    this.position = position;
  }

  /** The view once more, where what the client has leads nowhere. */
  restart(position: string, message: Buffer): void {
    if (!this.isOpen || (this.position !== undefined && includes(this.position, position))) return;
    if (this.#sender.unsentBytes > this.#limits.bufferedBytes) return this.terminate('slow');
    this.begin(position, [message]);
  }

  update(position: string, message: Buffer): void {
    if (!this.isOpen || (this.position !== undefined && includes(this.position, position))) return;
    if (this.#sender.unsentBytes > this.#limits.bufferedBytes + this.#firstUnsentBytes()) return this.terminate('slow');
    this.position = position;
    this.#sender.send(message);
  }

  /** What is no part of the view, and has no position. One that has been sent nothing yet gets it with the view. */
  notify(message: Buffer): void {
    if (!this.isOpen || this.position === undefined) return;
    if (this.#sender.unsentBytes > this.#limits.bufferedBytes + this.#firstUnsentBytes()) return this.terminate('slow');
    this.#sender.send(message);
  }

  /** Called every tick. */
  check(): void {
    if (!this.isOpen) return;
    const now = this.#now();
    const { unsentBytes, progressAt } = this.#sender;
    if (unsentBytes > 0 && now - progressAt > this.#limits.stallMs) return this.terminate('slow');
    // While the first messages go out they delay pongs. Later the kernel would take updates for a client that is gone.
    if (this.#firstUnsentBytes() > 0) this.#pongAt = Math.max(this.#pongAt, progressAt);
    if (now - this.#pongAt > this.#limits.pongMs) return this.terminate('ping-timeout');
    if (now < this.#pingAt) return;
    this.#pingAt = now + this.#limits.pingMs;
    this.#socket.ping();
  }

  /** For one that would read the close frame. */
  close(code: number, text: string, reason: DisconnectReason): void {
    if (!this.isOpen) return;
    this.#reason = reason;
    this.#socket.close(code, text);
  }

  terminate(reason: DisconnectReason): void {
    if (this.isOpen) this.#reason = reason;
    this.#socket.terminate();
  }

  #firstUnsentBytes(): number {
    return Math.max(0, this.#firstBytes - this.#sender.sentBytes);
  }
}
