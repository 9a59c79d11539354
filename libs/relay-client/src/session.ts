import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';

import {
  ALL_CAPABILITIES,
  CAPABILITY,
  type Challenge,
  CLIENT_NONCE_BYTES,
  DATA_HEAD_BYTES,
  decodeExtension,
  decodeMessage,
  encodeExtension,
  encodeRegister,
  type ExtensionMessage,
  FRAME,
  FrameError,
  FrameParser,
  HEADER_BYTES,
  isLowOrderKey,
  LENGTH_BYTES,
  proofTags,
  type Ready,
  sameTag,
  VERSION,
} from '@unbounded/relay-protocol';

import type { Clock, Timer } from './clock.ts';
import type { Dial } from './dial.ts';
import type { Endpoint } from './endpoint.ts';
import { formatEndpoint } from './endpoint.ts';
import { Liveness } from './liveness.ts';
import { Outbox } from './outbox.ts';
import { type Exchange, platformCrypto } from './platform-crypto.ts';
import type { Tallies } from './tallies.ts';

const CONNECT_MS = 10_000;
/** From Challenge to Ready. */
const PROOF_MS = 10_000;
/** A relay that has not sent a Challenge by then is one without the extension. */
const LEGACY_MS = 1000;
/** Of what a relay says in words. */
const MOST_TEXT = 256;
/** Time to bring out what is still to be sent when a connection is ended on purpose. */
const FAREWELL_MS = 1000;

/**
 * Why a session ended. `unreachable`: no connection; `closed`: by the relay or the network; `refused`: with an Error frame;
 * `unproven`: not the relay that was expected; `malformed`: not the protocol; `silent`, `stalled`: it is dead or does not
 * read; `stopped`: by us.
 */
export type EndReason =
  | 'unreachable'
  | 'closed'
  | 'refused'
  | 'unproven'
  | 'malformed'
  | 'silent'
  | 'stalled'
  | 'stopped';

export interface SessionEnd {
  readonly reason: EndReason;
  readonly message: string;
}

/** Who registers. */
export interface Identity {
  /** The WireGuard public key, 32 bytes. */
  readonly publicKey: Uint8Array;
  /** X25519 with its private key; without it nothing can be proven. */
  readonly exchange?: Exchange;
}

export interface SessionOptions {
  readonly identity: Identity;
  /** The relay's own public key: one that does not prove that it has it is left. */
  readonly pinnedKey?: Uint8Array;
  readonly dial: Dial;
  readonly clock: Clock;
  readonly tallies: Tallies;
  readonly budgetBytes: number;
}

/** What a session tells its owner. */
export interface SessionEvents {
  /** It can be sent on; called once. */
  onUsable(session: Session): void;
  /** The relay has proven itself and the key is ours, or the round trip has been measured anew. */
  onChange(session: Session): void;
  /** It is over; called once, and nothing is called after it. */
  onEnd(session: Session, end: SessionEnd): void;
  /** Both may be kept; they are parts of a larger buffer. */
  onData(key: Buffer, payload: Buffer): void;
  onPeerGone(session: Session, key: Uint8Array, reason: number): void;
  onHealth(session: Session, code: number, text: string): void;
  onDrain(session: Session, reconnectInMs: number, tryForMs: number): void;
}

/** One connection to a relay, from dialling to its end. There is no way back: the next connection is another session. */
export class Session {
  readonly endpoint: Endpoint;
  readonly #options: SessionOptions;
  readonly #events: SessionEvents;
  readonly #socket: Socket;
  readonly #outbox: Outbox;
  readonly #liveness: Liveness;
  readonly #parser = new FrameParser();
  readonly #register: Uint8Array;
  readonly #hello: Uint8Array;
  #deadline: Timer | undefined;
  #isConnected = false;
  #isChallenged = false;
  #readyTag: Uint8Array | undefined;
  #errorText: string | undefined;
  #isEnded = false;
  /** When it became usable; undefined: not yet. */
  usableSince: number | undefined;
  /** Both ends have proven their keys. */
  isProven = false;

  constructor(endpoint: Endpoint, options: SessionOptions, events: SessionEvents) {
    const { identity, dial, clock, tallies, budgetBytes } = options;
    this.endpoint = endpoint;
    this.#options = options;
    this.#events = events;
    this.#register = encodeRegister(identity.publicKey);
    this.#hello = encodeExtension({
      kind: 'hello',
      version: VERSION,
      capabilities: ALL_CAPABILITIES,
      nonce: randomBytes(CLIENT_NONCE_BYTES),
      extras: [],
    });
    this.#socket = dial(endpoint);
    this.#outbox = new Outbox({ wire: this.#socket, budgetBytes, tallies, clock });
    this.#liveness = new Liveness({
      clock,
      send: (frame, isLast) => this.#outbox.sendControl(frame, isLast),
      writingSince: () => this.#outbox.writingSince,
      onDead: (reason, message) => this.end(reason, message),
    });
    this.#within(CONNECT_MS, () => this.end('unreachable', `no connection within ${CONNECT_MS} ms`));
    this.#listen();
  }

  get isUsable(): boolean {
    return this.usableSince !== undefined && !this.#isEnded;
  }

  /** Whether the relay speaks the extension. */
  get isExtended(): boolean {
    return this.#isChallenged;
  }

  get rttMs(): number | undefined {
    return this.#liveness.rttMs;
  }

  /** Bytes that wait to be sent. */
  get queued(): number {
    return this.#outbox.queued;
  }

  sendData(key: Uint8Array, payload: Uint8Array): void {
    this.#outbox.sendData(key, payload);
  }

  /** Calls `done` when the relay has taken what was sent before, or the session is over; at once when it cannot tell. */
  barrier(done: () => void): void {
    this.#liveness.barrier(done);
  }

  /** Ends it at once. */
  end(reason: EndReason, message: string): void {
    if (this.#finish(reason, message)) this.#socket.destroy();
  }

  /** Ends it when what has been sent is out. */
  leave(): void {
    this.#outbox.flush();
    if (!this.#finish('stopped', 'left')) return;
    this.#socket.destroySoon();
    const timer = this.#options.clock.after(FAREWELL_MS, () => this.#socket.destroy());
    this.#socket.once('close', () => timer.cancel());
  }

  #finish(reason: EndReason, message: string): boolean {
    if (this.#isEnded) return false;
    this.#isEnded = true;
    this.#deadline?.cancel();
    this.#outbox.close();
    this.#liveness.stop();
    this.#events.onEnd(this, { reason, message: `${formatEndpoint(this.endpoint)}: ${message}` });
    return true;
  }

  #listen(): void {
    const socket = this.#socket;
    socket.once(this.endpoint.isTls ? 'secureConnect' : 'connect', () => this.#onConnected());
    socket.on('data', (piece: Buffer) => this.#onBytes(piece));
    socket.on('error', (error) => {
      if (this.#isConnected) this.#onClosed(error.message);
      else this.end('unreachable', error.message);
    });
    socket.on('end', () => this.#onClosed('the relay has ended the connection'));
    socket.on('close', () => this.#onClosed('the connection is closed'));
  }

  #onClosed(message: string): void {
    if (this.#errorText === undefined) this.end('closed', message);
    else this.end('refused', this.#errorText);
  }

  #onConnected(): void {
    if (this.#isEnded) return;
    this.#isConnected = true;
    this.#options.tallies.connections++;
    this.#outbox.sendControl(Buffer.concat([this.#register, this.#hello]));
    this.#outbox.flush();
    this.#liveness.onRead();
    if (this.#options.pinnedKey === undefined) this.#within(LEGACY_MS, () => this.#becomeUsable());
    else this.#within(PROOF_MS, () => this.end('unproven', 'the relay does not prove the pinned key'));
  }

  #onBytes(piece: Buffer): void {
    this.#liveness.onRead();
    try {
      this.#parser.push(piece, (bytes, start, end) => {
        if (this.#isEnded) return;
        // What a read has brought is ours; a frame that came in parts stands in a buffer of the parser's.
        const frame = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
        this.#onFrame(bytes === piece ? frame : Buffer.from(frame));
      });
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.end('malformed', error.message);
    }
  }

  #onFrame(frame: Buffer): void {
    const type = frame[LENGTH_BYTES]!;
    if (type === FRAME.data) return this.#onData(frame);
    if (type === FRAME.error) {
      const message = decodeMessage(frame);
      if (message.kind === 'error') this.#errorText = message.text.slice(0, MOST_TEXT);
      return;
    }
    const message = decodeExtension(frame);
    if (message !== undefined) this.#onExtension(message, frame);
  }

  #onData(frame: Buffer): void {
    if (frame.length < DATA_HEAD_BYTES) throw new FrameError(`Data of ${frame.length} bytes has no whole key`);
    if (this.#options.pinnedKey !== undefined && !this.isProven) return;
    const { tallies } = this.#options;
    tallies.receivedFrames++;
    tallies.receivedBytes += frame.length;
    this.#events.onData(frame.subarray(HEADER_BYTES, DATA_HEAD_BYTES), frame.subarray(DATA_HEAD_BYTES));
  }

  #onExtension(message: ExtensionMessage, frame: Buffer): void {
    switch (message.kind) {
      case 'challenge':
        return this.#onChallenge(message, frame);
      case 'ready':
        return this.#onReady(message);
      case 'ping':
        return this.#send(encodeExtension({ kind: 'pong', data: message.data }));
      case 'pong':
        this.#liveness.onPong(message.data);
        return this.#isEnded ? undefined : this.#events.onChange(this);
      case 'peerGone':
        return this.#events.onPeerGone(this, message.key, message.reason);
      case 'health':
        return this.#events.onHealth(this, message.code, message.text.slice(0, MOST_TEXT));
      case 'drain':
        return this.#events.onDrain(this, message.reconnectInMs, message.tryForMs);
      case 'hello':
      case 'proof':
        return; // a relay sends none: ignored as any unknown type
    }
  }

  #onChallenge(challenge: Challenge, frame: Buffer): void {
    if (this.#isChallenged) return;
    this.#isChallenged = true;
    const { pinnedKey, identity } = this.#options;
    if (pinnedKey !== undefined && !sameTag(pinnedKey, challenge.relayKey))
      return this.end('unproven', 'the relay has another key than the pinned one');
    if (isLowOrderKey(challenge.ephemeralKey)) return this.end('malformed', 'the relay’s key is a point of low order');
    if ((challenge.capabilities & CAPABILITY.ping) !== 0) this.#liveness.usePings();
    if (identity.exchange === undefined) return; // it stays unproven, as with a relay that cannot ask
    if (!this.isUsable) this.#within(PROOF_MS, () => this.end('unproven', `no Ready within ${PROOF_MS} ms`));
    const hasOwnKey = challenge.relayKey.some((byte) => byte !== 0);
    const relayKeys = hasOwnKey ? [challenge.ephemeralKey, challenge.relayKey] : [challenge.ephemeralKey];
    const { exchange } = identity;
    void this.#prove(
      relayKeys.map((publicKey) => ({ privateKey: exchange, publicKey })),
      frame,
    );
  }

  async #prove(
    exchanges: readonly { readonly privateKey: Exchange; readonly publicKey: Uint8Array }[],
    challenge: Uint8Array,
  ): Promise<void> {
    const transcript = { register: this.#register, hello: this.#hello, challenge };
    try {
      const tags = await proofTags(platformCrypto, exchanges, transcript);
      this.#readyTag = tags.relay;
      this.#send(encodeExtension({ kind: 'proof', tag: tags.client }));
      this.#outbox.flush();
    } catch (error) {
      this.end('unproven', `cannot prove the key: ${(error as Error).message}`);
    }
  }

  #onReady(ready: Ready): void {
    if (this.#readyTag === undefined || this.isProven) return;
    if (!sameTag(this.#readyTag, ready.tag))
      return this.end('unproven', 'the relay does not prove its key: its Ready has a wrong tag');
    this.isProven = true;
    this.#liveness.setKeepalive(ready.keepaliveMs);
    if (this.isUsable) this.#events.onChange(this);
    else this.#becomeUsable();
  }

  #becomeUsable(): void {
    this.#deadline?.cancel();
    this.usableSince = this.#options.clock.now();
    this.#liveness.start();
    this.#events.onUsable(this);
  }

  #send(frame: Uint8Array): void {
    this.#outbox.sendControl(frame);
  }

  #within(ms: number, run: () => void): void {
    this.#deadline?.cancel();
    this.#deadline = this.#options.clock.after(ms, run);
  }
}
