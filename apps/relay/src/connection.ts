import { Socket } from 'node:net';
import { type SecureContext, TLSSocket } from 'node:tls';

import { type Guest, limitedAs, type Place } from './admission.ts';
import type { ClientContext } from './client-context.ts';
import { Client } from './client.ts';
import { HEADROOM } from './memory.ts';
import { decodeProxyHeader, MAX_PROXY_HEADER_BYTES } from './proxy-protocol.codec.ts';
import type { CloseReason } from './tallies.ts';

/** Whatever a connection's bytes are given to: first its opening, then its client. */
export interface Reader {
  onBytes(count: number): void;
  check(now: number): void;
  /** The connection has ended. */
  onClosed(reason: CloseReason): void;
  /** Ends it. */
  end(reason: CloseReason): void;
}

/** A socket that reads into the common buffer. One function serves all of them: a closure for each would cost memory. */
class RelaySocket extends Socket {
  reader: Reader | undefined;
}

const onRead = function (this: unknown, count: number): boolean {
  (this as RelaySocket).reader?.onBytes(count);
  return true;
};
const onClose = function (this: RelaySocket, hadError: boolean): void {
  this.reader?.onClosed(hadError ? 'error' : 'by-peer');
};
const onError = (): void => {};

export interface ConnectionContext {
  readonly clients: ClientContext;
  /** Undefined: no TLS. A function, because certificates are renewed. */
  readonly secureContext: () => SecureContext | undefined;
  /** Whether a PROXY header must come from that address. */
  readonly isProxy: (address: string) => boolean;
  readonly readers: Set<Reader>;
}

/** First byte of a TLS ClientHello (a record of the handshake); a frame begins with 0. */
const TLS_HANDSHAKE = 0x16;

/**
 * Takes a connection that the server has accepted without reading from it. Node gives a server's sockets no `onread`
 * option, so the handle moves to a socket of ours that has it: reads then go into one buffer instead of a new one each,
 * which halves the processor time per packet and keeps an idle connection small.
 */
export const takeConnection = (accepted: Socket, context: ConnectionContext): void => {
  const now = performance.now();
  const { slab } = context.clients;
  const address = accepted.remoteAddress;
  const holder = accepted as unknown as { _handle: { reading: boolean } | null };
  const handle = holder._handle;
  if (address === undefined || handle === null) return void accepted.destroy(); // it has ended already
  holder._handle = null;
  handle.reading = false;
  const options = { handle, onread: { buffer: slab.target, callback: onRead } };
  const socket = new RelaySocket(options);
  socket.on('close', onClose).on('error', onError);
  const opening = new Opening(context, socket, now);
  socket.reader = opening;
  context.readers.add(opening);
  opening.begin(limitedAs(address), context.isProxy(address));
  if (!socket.destroyed) socket.resume();
};

/** A connection until its first byte says what it is: a PROXY header first, if one must come, then TLS or frames. */
class Opening implements Reader, Guest {
  readonly #context: ConnectionContext;
  readonly #socket: RelaySocket;
  readonly #since: number;
  #proxyHeader: Buffer | undefined;
  readonly #place: Place = { holder: this, address: undefined };

  constructor(context: ConnectionContext, socket: RelaySocket, now: number) {
    this.#context = context;
    this.#socket = socket;
    this.#since = now;
  }

  begin(address: string, isProxy: boolean): void {
    this.#context.clients.admission.enter(this.#place, address);
    if (isProxy) this.#proxyHeader = Buffer.alloc(0);
    else this.#enterAddress(address);
  }

  onBytes(count: number): void {
    const { slab } = this.#context.clients;
    let left = count;
    if (this.#proxyHeader !== undefined) {
      left = this.#takeProxyHeader(this.#proxyHeader, slab.bytes.subarray(HEADROOM, HEADROOM + count));
      if (left <= 0) return;
    }
    const secureContext = this.#context.secureContext();
    if (slab.bytes[HEADROOM] === TLS_HANDSHAKE && secureContext !== undefined)
      return this.#becomeTls(secureContext, Buffer.from(slab.target.subarray(0, left)));
    const client = this.#becomeClient(this.#socket);
    this.#socket.reader = client;
    client.onBytes(left);
  }

  check(now: number): void {
    if (now - this.#since > this.#context.clients.limits.registerDeadlineMs) this.end('not-registered');
  }

  onClosed(reason: CloseReason): void {
    const { clients, readers } = this.#context;
    if (!readers.delete(this)) return;
    clients.tallies.closed[reason]++;
    clients.admission.leave(this.#place);
  }

  evict(): void {
    this.end('evicted');
  }

  end(reason: CloseReason): void {
    this.#socket.destroy();
    this.onClosed(reason);
  }

  #enterAddress(address: string): void {
    const { clients, readers } = this.#context;
    const refusal = clients.admission.enterAddress(this.#place, address, performance.now());
    if (refusal === undefined) return;
    clients.tallies.refused[refusal]++;
    readers.delete(this);
    this.#socket.destroy();
    clients.admission.leave(this.#place);
  }

  /** Puts what follows the header where reads stand, and says how much that is; 0 or less: nothing to go on with. */
  #takeProxyHeader(before: Buffer, read: Buffer): number {
    const bytes = Buffer.concat([before, read]);
    const header = decodeProxyHeader(bytes);
    if (header.kind === 'partial' && bytes.length <= MAX_PROXY_HEADER_BYTES) {
      this.#proxyHeader = bytes;
      return 0;
    }
    if (header.kind !== 'header') {
      this.end('proxy');
      return 0;
    }
    this.#proxyHeader = undefined;
    if (header.source !== undefined) this.#enterAddress(limitedAs(header.source));
    if (this.#socket.destroyed) return 0;
    const left = bytes.subarray(header.bytes);
    this.#context.clients.slab.target.set(left);
    return left.length;
  }

  #becomeTls(secureContext: SecureContext, first: Buffer): void {
    const { slab } = this.#context.clients;
    // Paused, or the stream would throw away what is put back before TLS asks for it.
    this.#socket.pause();
    this.#socket.unshift(first);
    const secure = new TLSSocket(this.#socket, { isServer: true, secureContext });
    this.#socket.reader = undefined;
    let client: Client | undefined;
    secure.on('error', onError);
    secure.on('close', (hadError: boolean) => (client ?? this).onClosed(hadError ? 'tls' : 'by-peer'));
    secure.on('data', (chunk: Buffer) => {
      client ??= this.#becomeClient(secure);
      slab.target.set(chunk);
      client.onBytes(chunk.length);
    });
  }

  #becomeClient(socket: Socket): Client {
    const { clients, readers } = this.#context;
    readers.delete(this);
    const client = new Client(clients, socket, this.#place);
    this.#place.holder = client;
    readers.add(client);
    return client;
  }
}
