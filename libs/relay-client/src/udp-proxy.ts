import { createSocket, type Socket } from 'node:dgram';

import { type Logger, silentLogger } from '@unbounded/telemetry';

import { type Clock, systemClock, type Timer } from './clock.ts';
import type { PeerSource, RelayPeer } from './pool.ts';

/** A fresh socket at most this often. */
const REBIND_MS = 100;
const LOG_MS = 1000;
/**
 * What WireGuard sends while this process waits for a processor must find room: the usual buffer holds 277 small packets. The
 * kernel gives twice net.core.rmem_max at most, and takes the memory only for what is there.
 */
const RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024;
/** Errors that say nothing about the socket: the kernel is short of memory. */
const PASSING: ReadonlySet<string> = new Set(['ENOBUFS', 'ENOMEM', 'EAGAIN']);

export interface UdpProxyOptions {
  /** Usually a `RelayPool`. */
  readonly relays: PeerSource;
  /** The peer's WireGuard public key, 32 bytes. */
  readonly key: Uint8Array;
  /** Where WireGuard listens on this machine. */
  readonly wireGuardPort: number;
  /** 4: 127.0.0.1, when not set; 6: ::1. */
  readonly family?: 4 | 6;
  /** The local port; a free one when not set. One that is known from before lets WireGuard keep its endpoint. */
  readonly port?: number;
  /** Of free ports, which to take: not one that another program of the node has to have. Any, when not set. */
  readonly suits?: (port: number) => boolean;
  /** Where it counts; several may share one. */
  readonly tallies?: UdpProxyTallies;
  readonly logger?: Logger;
  readonly clock?: Clock;
  /** How often there may be a fresh socket, 100 ms when not set. */
  readonly rebindMs?: number;
}

export interface UdpProxyTallies {
  toRelay: number;
  toWireGuard: number;
  /** What could not be given to WireGuard. */
  dropped: number;
  /** Fresh sockets. */
  rebinds: number;
  /** Errors, by code. */
  readonly errors: Record<string, number>;
}

export const newProxyTallies = (): UdpProxyTallies => ({
  toRelay: 0,
  toWireGuard: 0,
  dropped: 0,
  rebinds: 0,
  errors: {},
});

/**
 * A peer's stand-in on this machine: WireGuard has its address as the peer's endpoint, and what comes from there goes
 * over relays. Its port stays the same as long as it lives, whatever becomes of relays. The socket is connected, so that
 * only WireGuard's packets come in. After an error of the socket (EPERM of a policy in the kernel, ECONNREFUSED while
 * WireGuard is away) there is a fresh one on the same port, again and again.
 */
export class UdpProxy {
  readonly #options: Required<Pick<UdpProxyOptions, 'wireGuardPort' | 'logger' | 'clock' | 'rebindMs'>>;
  readonly #address: string;
  readonly #peer: RelayPeer;
  /** Undefined while there is none. */
  #socket: Socket | undefined;
  #rebind: Timer | undefined;
  #lastBindAt: number;
  #lastLogAt = Number.NEGATIVE_INFINITY;
  #unlogged = 0;
  /** A packet that met an error, to be sent again. */
  #failed: Uint8Array | undefined;
  #isClosed = false;
  readonly port: number;
  readonly tallies: UdpProxyTallies;

  private constructor(options: UdpProxyOptions, bound: Socket) {
    const { relays, key, wireGuardPort, logger = silentLogger, clock = systemClock, rebindMs = REBIND_MS } = options;
    this.#options = { wireGuardPort, logger, clock, rebindMs };
    this.#address = addressOf(options.family);
    this.tallies = options.tallies ?? newProxyTallies();
    this.#peer = relays.open(key, (payload) => this.#toWireGuard(payload));
    this.port = bound.address().port;
    this.#lastBindAt = clock.now();
    this.#use(bound);
  }

  /** @throws Error with `code` EADDRINUSE when the port is taken; Error when the peer is open already */
  static async open(options: UdpProxyOptions): Promise<UdpProxy> {
    const address = addressOf(options.family);
    const { port, suits = () => true, wireGuardPort } = options;
    const socket =
      port === undefined ? await bindFree(address, suits, wireGuardPort) : await bind(address, port, wireGuardPort);
    try {
      return new UdpProxy(options, socket);
    } catch (error) {
      socket.close();
      throw error;
    }
  }

  /** What WireGuard gets as the peer's endpoint. */
  get endpoint(): { readonly address: string; readonly port: number } {
    return { address: this.#address, port: this.port };
  }

  /** The relay that the peer goes by; undefined: none. */
  get relay(): string | undefined {
    return this.#peer.relay;
  }

  /** See `RelayPeer`. */
  tryAnother(): void {
    this.#peer.tryAnother();
  }

  close(): void {
    this.#isClosed = true;
    this.#rebind?.cancel();
    this.#peer.close();
    this.#drop(this.#socket);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #toWireGuard(payload: Uint8Array, isAgain = false): void {
    const socket = this.#socket;
    if (socket === undefined) {
      this.tallies.dropped++;
      return;
    }
    // Errors come to the callback only; it is called in a later turn, when there may be another socket.
    socket.send(payload, (error) => {
      if (error === null) this.tallies.toWireGuard++;
      else if (!isAgain && this.#onError(socket, error)) this.#failed = payload;
      else {
        this.tallies.dropped++;
        if (isAgain) this.#onError(socket, error);
      }
    });
  }

  /**
   * One socket's first error makes the next one; those after it come too late to mean anything. @returns whether there
   * will be a fresh socket
   */
  #onError(socket: Socket, error: NodeJS.ErrnoException): boolean {
    if (this.#isClosed) return false;
    this.#count(error);
    if (socket !== this.#socket || PASSING.has(error.code ?? '')) return false;
    this.#drop(socket);
    this.#rebindSoon();
    return true;
  }

  #rebindSoon(): void {
    const { clock, rebindMs } = this.#options;
    const wait = Math.max(0, this.#lastBindAt + rebindMs - clock.now());
    this.#rebind = clock.after(wait, () => void this.#bindAgain());
  }

  async #bindAgain(): Promise<void> {
    const { wireGuardPort, clock } = this.#options;
    this.#lastBindAt = clock.now();
    this.tallies.rebinds++;
    try {
      const socket = await bind(this.#address, this.port, wireGuardPort);
      if (this.#isClosed) socket.close();
      else this.#use(socket);
    } catch (error) {
      if (this.#isClosed) return;
      this.#count(error as Error); // somebody else may have taken the port in between: it has to come back
      this.#rebindSoon();
    }
  }

  #use(socket: Socket): void {
    this.#socket = socket;
    socket.on('message', (payload) => {
      this.tallies.toRelay++;
      this.#peer.send(payload);
    });
    socket.on('error', (error) => this.#onError(socket, error));
    const failed = this.#failed;
    this.#failed = undefined;
    // Once: what fails again is old by then.
    if (failed !== undefined) this.#toWireGuard(failed, true);
  }

  #drop(socket: Socket | undefined): void {
    if (socket === undefined) return;
    this.#socket = undefined;
    socket.removeAllListeners('message');
    socket.removeAllListeners('error');
    socket.on('error', () => {});
    socket.close();
  }

  #count(error: NodeJS.ErrnoException): void {
    const { clock, logger } = this.#options;
    const code = error.code ?? 'unknown';
    this.tallies.errors[code] = (this.tallies.errors[code] ?? 0) + 1;
    this.#unlogged++;
    if (clock.now() - this.#lastLogAt < LOG_MS) return;
    this.#lastLogAt = clock.now();
    logger.warn({ code, port: this.port, errors: this.#unlogged }, `UDP proxy: ${error.message}`);
    this.#unlogged = 0;
  }
}

const addressOf = (family: 4 | 6 = 4): string => (family === 4 ? '127.0.0.1' : '::1');

/** A socket on that port (0: a free one), connected to WireGuard's on the same address. */
const bind = (address: string, port: number, wireGuardPort: number): Promise<Socket> => {
  const family = address === '::1' ? 6 : 4;
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = createSocket({
    type: family === 6 ? 'udp6' : 'udp4',
    ipv6Only: family === 6,
    recvBufferSize: RECEIVE_BUFFER_BYTES,
    // Nothing is to be looked up, and so nothing has to be waited for.
    lookup: (host, _options, done) => done(null, host, family),
  });
  socket.once('error', (error) => {
    socket.close();
    reject(error);
  });
  socket.bind({ address, port, exclusive: true }, () => {
    socket.once('connect', () => {
      socket.removeAllListeners('error');
      resolve(socket);
    });
    socket.connect(wireGuardPort, address);
  });
  return promise;
};

/** The kernel proposes ports; where hardly one of its range suits, the last proposal has to do. */
const PROPOSALS = 32;

const bindFree = async (address: string, suits: (port: number) => boolean, wireGuardPort: number): Promise<Socket> => {
  for (let proposal = 1; ; proposal++) {
    const socket = await bind(address, 0, wireGuardPort);
    if (proposal === PROPOSALS || suits(socket.address().port)) return socket;
    socket.close();
  }
};
