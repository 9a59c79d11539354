import { closeSync } from 'node:fs';

import { Exchange } from './exchange.ts';
import {
  FLAG,
  type Message,
  messageBytes,
  NetlinkDecodeError,
  readMessages,
  type Request,
  writeMessage,
} from './message.codec.ts';
import { addon, type SocketHandle } from './native.ts';
import { NetlinkError } from './netlink-error.ts';

/** NETLINK_* of linux/netlink.h. */
export const PROTOCOL = { route: 0, netfilter: 12, generic: 16 } as const;

export interface NetlinkSocketOptions {
  readonly protocol: number;
  /** The namespace to open it in; absent: the process's own. Needed only while the socket is being opened. */
  readonly netnsFd?: number;
  /** Room for what the kernel has to say, in bytes; default 8 MiB. Also bounds the largest transaction. */
  readonly bufferBytes?: number;
  /** Multicast messages. */
  readonly onEvent?: (message: Message) => void;
  /** The kernel lost messages for this socket; it goes on. */
  readonly onOverflow?: () => void;
  /** The socket is useless, and closed. */
  readonly onError?: (error: Error) => void;
}

const DEFAULT_BUFFER = 8 << 20;
/** Messages that wait for their reply at the same time: their replies fit well into the default buffer. */
const WINDOW = 2048;
/** Messages and bytes of one system call. More of them gain nothing, and hold up the event loop. */
const PACK_MESSAGES = 256;
const PACK_BYTES = 64 << 10;
/** A table that changes this often while it is listed is not listed. */
const DUMP_ATTEMPTS = 8;
const [EINTR, ENOBUFS] = [4, 105];
const NOTHING = new Uint8Array(0);

interface Packet {
  readonly bytes: Uint8Array;
  readonly exchange: Exchange;
  /** Index of its first request, and how many. */
  readonly start: number;
  readonly count: number;
}

/**
 * Requests and replies over one netlink socket, on the event loop. Requests may be in flight side by side; the kernel
 * answers in order. Dumps follow one another, as a socket can only run one at a time.
 */
export class NetlinkSocket implements AsyncDisposable {
  readonly #options: NetlinkSocketOptions;
  readonly #handle: SocketHandle;
  readonly #pending = new Map<number, Exchange>();
  readonly #refused = new Set<Exchange>();
  #queue: Packet[] = [];
  #seq = 0;
  #inFlight = 0;
  #blocked = false;
  #held = false;
  #listening = false;
  #closed = false;
  #lastDump: Promise<unknown> = Promise.resolve();

  /** @throws Error with `code` EPERM, EPROTONOSUPPORT, … */
  constructor(options: NetlinkSocketOptions) {
    this.#options = options;
    const receive = (bytes: Uint8Array, errno: number, writable: boolean): void =>
      this.#receive(bytes, errno, writable);
    this.#handle = addon().openSocket(
      options.protocol,
      options.netnsFd ?? -1,
      options.bufferBytes ?? DEFAULT_BUFFER,
      receive,
    );
    addon().holdLoop(this.#handle, false);
  }

  /** One request; resolves with its replies. @throws NetlinkError */
  async request(request: Request): Promise<Message[]> {
    const replies: Message[] = [];
    const [error] = await this.#exchange([request], { each: (message) => replies.push(message) });
    if (error) throw error;
    return replies;
  }

  /** Many requests, packed; resolves with the refusal of each. Nothing is rolled back. */
  async apply(requests: readonly Request[]): Promise<(NetlinkError | undefined)[]> {
    return requests.length === 0 ? [] : this.#exchange(requests, {});
  }

  /** All in one system call, settled at the first refusal: for protocols that do all or nothing (nfnetlink batches). */
  async transact(requests: readonly Request[]): Promise<(NetlinkError | undefined)[]> {
    return this.#exchange(requests, { untilError: true });
  }

  /** Lists what the kernel has; starts over when it changed meanwhile. @throws NetlinkError, NetlinkDecodeError */
  dump<T>(request: Request, decode: (message: Message) => T | undefined): Promise<T[]> {
    const result = this.#lastDump.then(() => this.#dumpNow(request, decode));
    this.#lastDump = result.catch(() => undefined);
    return result;
  }

  async #dumpNow<T>(request: Request, decode: (message: Message) => T | undefined): Promise<T[]> {
    const dump = { ...request, flags: request.flags | FLAG.dump };
    for (let attempt = 1; ; attempt++) {
      const found: T[] = [];
      const state = { interrupted: false };
      const each = (message: Message): void => {
        const value = decode(message);
        if (value !== undefined) found.push(value);
      };
      const [error] = await this.#exchange([dump], { each, state });
      const again = error ? error.errno === ENOBUFS || error.errno === EINTR : state.interrupted;
      if (!again && error) throw error;
      if (!again) return found;
      if (attempt === DUMP_ATTEMPTS) {
        throw new NetlinkError(
          EINTR,
          typeof request.what === 'string' ? request.what : request.what(),
          'it changed while it was listed, every time',
        );
      }
    }
  }

  /** Hears a multicast group. @throws Error with `code` */
  join(group: number): void {
    addon().setMembership(this.#handle, group, true);
    this.#listening = true;
    this.#hold();
  }

  leave(group: number): void {
    addon().setMembership(this.#handle, group, false);
  }

  /** Events alone no longer keep the process alive. */
  unref(): void {
    this.#listening = false;
    this.#hold();
  }

  /** Runs with an fd of the namespace this socket is in. */
  withNetns<T>(use: (netnsFd: number) => T): T {
    const fd = addon().netnsOf(this.#handle);
    try {
      return use(fd);
    } finally {
      closeSync(fd);
    }
  }

  /** What is unanswered fails with ECANCELED. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    addon().closeSocket(this.#handle);
    const ECANCELED = 125;
    this.#failAll(ECANCELED, 'the socket was closed');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  #exchange(
    requests: readonly Request[],
    options: { each?: (message: Message) => void; untilError?: boolean; state?: { interrupted: boolean } },
  ): Promise<(NetlinkError | undefined)[]> {
    return new Promise((resolve, reject) => {
      if (this.#closed) throw new Error('the netlink socket is closed');
      const exchange = new Exchange({
        requests,
        firstSeq: this.#claimSeq(requests.length),
        untilError: options.untilError ?? false,
        each: options.each,
        settled: ({ errors, failure, interrupted }) => {
          for (let index = 0; index < requests.length; index++) this.#pending.delete(exchange.firstSeq + index);
          if (options.state) options.state.interrupted = interrupted;
          if (failure === undefined) resolve(errors);
          else reject(failure);
        },
      });
      this.#pack(exchange);
      this.#pump();
    });
  }

  /** Consecutive numbers, never 0 (which is the kernel's for multicast). */
  #claimSeq(count: number): number {
    if (this.#seq + count >= 0xffff_ffff) this.#seq = 0;
    const first = this.#seq + 1;
    this.#seq += count;
    return first;
  }

  #pack(exchange: Exchange): void {
    const { requests } = exchange;
    for (let start = 0; start < requests.length;) {
      let [end, size] = [start, 0];
      for (; end < requests.length; end++) {
        const next = size + messageBytes(requests[end]?.body ?? NOTHING);
        if (end > start && !exchange.untilError && (next > PACK_BYTES || end - start === PACK_MESSAGES)) break;
        size = next;
      }
      this.#queue.push({ bytes: this.#write(exchange, start, end, size), exchange, start, count: end - start });
      start = end;
    }
  }

  #write(exchange: Exchange, start: number, end: number, size: number): Uint8Array {
    const bytes = new Uint8Array(size);
    let at = 0;
    for (let index = start; index < end; index++) {
      const request = exchange.requests[index] as Request;
      const isDump = (request.flags & FLAG.dump) === FLAG.dump;
      // The kernel works in order and always answers a refusal: one acknowledgement speaks for all of a packet, and
      // spares as many messages as there are requests. A batch of nfnetlink is done as a whole: each is asked for there.
      const asksAnswer = !isDump && !request.silent && (exchange.untilError || index === end - 1);
      const flags = request.flags | FLAG.request | (asksAnswer ? FLAG.ack : 0);
      writeMessage(bytes, at, { type: request.type, flags, body: request.body }, exchange.firstSeq + index);
      this.#pending.set(exchange.firstSeq + index, exchange);
      at += messageBytes(request.body);
    }
    return bytes;
  }

  #pump(): void {
    while (!this.#blocked && this.#queue.length > 0) {
      const packet = this.#queue[0] as Packet;
      if (this.#inFlight > 0 && this.#inFlight + packet.count > WINDOW) break;
      try {
        this.#blocked = !addon().sendBytes(this.#handle, packet.bytes);
      } catch (error) {
        // The rest of it as well: nobody would hear what came of it.
        this.#queue = this.#queue.filter(({ exchange }) => exchange !== packet.exchange);
        packet.exchange.fail((error as { errno?: number }).errno ?? 5);
        continue;
      }
      if (this.#blocked) break;
      this.#queue.shift();
      this.#inFlight += packet.count;
    }
    this.#hold();
  }

  #receive(bytes: Uint8Array, errno: number, writable: boolean): void {
    if (this.#closed) return;
    if (writable) this.#blocked = false;
    try {
      readMessages(bytes, (message) => this.#dispatch(message));
    } catch (error) {
      this.#break(error as Error);
      return;
    }
    for (const exchange of this.#refused) exchange.giveUp();
    this.#refused.clear();
    if (errno === ENOBUFS) this.#overflow();
    else if (errno !== 0) this.#break(new NetlinkError(errno, 'receive from the kernel'));
    if (this.#pending.size === 0) this.#inFlight = 0;
    if (!this.#closed) this.#pump();
  }

  #dispatch(message: Message): void {
    const exchange = message.seq === 0 ? undefined : this.#pending.get(message.seq);
    if (!exchange) {
      this.#tell(message);
      return;
    }
    const openBefore = exchange.open;
    if (!exchange.receive(message)) return;
    this.#inFlight = Math.max(0, this.#inFlight - (openBefore - exchange.open));
    if (exchange.untilError && exchange.refused && !exchange.done) this.#refused.add(exchange);
  }

  /** What cannot be decoded is missed, as after an overflow; the next message may be good. */
  #tell(message: Message): void {
    const { onEvent, onOverflow } = this.#options;
    if (this.#closed) return; // by the reader of one before
    if (!onOverflow) return onEvent?.(message);
    try {
      onEvent?.(message);
    } catch (error) {
      if (!(error instanceof NetlinkDecodeError)) throw error;
      onOverflow();
    }
  }

  /** What was sent is lost, also of an exchange whose other packets still wait: their answers must not speak for it. */
  #overflow(): void {
    const sentOf = new Map<Exchange, number>();
    for (const { exchange, start } of this.#queue) if (!sentOf.has(exchange)) sentOf.set(exchange, start);
    for (const exchange of new Set(this.#pending.values())) exchange.lose(sentOf.get(exchange));
    this.#inFlight = 0;
    this.#options.onOverflow?.();
  }

  #break(error: Error): void {
    this.close();
    this.#options.onError?.(error);
  }

  #failAll(errno: number, reason: string): void {
    this.#queue = [];
    for (const exchange of new Set(this.#pending.values())) exchange.fail(errno, reason);
  }

  /** The process stays alive while a reply or an event is awaited. */
  #hold(): void {
    const hold = this.#pending.size > 0 || this.#listening;
    if (this.#closed || hold === this.#held) return;
    this.#held = hold;
    addon().holdLoop(this.#handle, hold);
  }
}
