import { encodeFrame, FRAME, FrameError, KEY_BYTES } from './frame.ts';
import { openFrame } from './messages.codec.ts';

/**
 * The extension. Its frames follow Register, so that an end without it ignores them; a relay sends none before a Hello.
 * All numbers are big-endian.
 *
 * | type         | body                                                                                                 |
 * | ------------ | ---------------------------------------------------------------------------------------------------- |
 * | 40 Hello     | u8 version 1, u32 capabilities, 16 B nonce, then any number of: u8 tag, u16 length, value            |
 * | 41 Challenge | u8 version 1, u32 capabilities of both, 32 B ephemeral X25519 key, 32 B static key of the relay      |
 * |              | (zeros: it has none), 32 B nonce, u32 milliseconds until it expires                                  |
 * | 42 Proof     | 32 B tag (see proof.ts)                                                                              |
 * | 43 Ready     | 32 B tag, u64 session, u32 keepalive ms, u32 idle timeout ms, u32 queue bytes, u32 bytes/s (0: any)  |
 * | 44 Ping      | 8 B, which 45 Pong returns                                                                           |
 * | 46 PeerGone  | 32 B key, u8 reason                                                                                  |
 * | 47 Health    | u8 code, UTF-8                                                                                       |
 * | 48 Drain     | u32 ms to wait before reconnecting, u32 ms for which this relay still forwards                       |
 *
 * Bodies may grow at their end in later versions: what follows the known fields is ignored (but for Hello's list).
 */
export const VERSION = 1;

/** What an end understands beyond the handshake; a relay uses what both ends have. */
export const CAPABILITY = { ping: 1, peerGone: 2, health: 4, drain: 8 } as const;
export const ALL_CAPABILITIES = CAPABILITY.ping | CAPABILITY.peerGone | CAPABILITY.health | CAPABILITY.drain;

export const PEER_GONE = { left: 0, notHere: 1, tooSlow: 2, notPermitted: 3 } as const;
export const HEALTH = { ok: 0, duplicateKey: 1, rateLimited: 2, notProven: 3, tooSlow: 4 } as const;

export const CLIENT_NONCE_BYTES = 16;
export const RELAY_NONCE_BYTES = 32;
const TAG_BYTES = 32;
export const PING_BYTES = 8;

interface Tlv {
  readonly tag: number;
  readonly value: Uint8Array;
}
export interface Hello {
  readonly kind: 'hello';
  readonly version: number;
  readonly capabilities: number;
  readonly nonce: Uint8Array;
  readonly extras: readonly Tlv[];
}
export interface Challenge {
  readonly kind: 'challenge';
  readonly version: number;
  readonly capabilities: number;
  readonly ephemeralKey: Uint8Array;
  /** Zeros when the relay has none. */
  readonly relayKey: Uint8Array;
  readonly nonce: Uint8Array;
  readonly expiresInMs: number;
}
export interface Ready {
  readonly kind: 'ready';
  readonly tag: Uint8Array;
  readonly session: bigint;
  readonly keepaliveMs: number;
  readonly idleTimeoutMs: number;
  /** Bytes that the relay holds for a client that reads slowly. */
  readonly queueBytes: number;
  /** What the client may send; 0: any amount. */
  readonly bytesPerSecond: number;
}
export type ExtensionMessage =
  | Hello
  | Challenge
  | { readonly kind: 'proof'; readonly tag: Uint8Array }
  | Ready
  | { readonly kind: 'ping' | 'pong'; readonly data: Uint8Array }
  | { readonly kind: 'peerGone'; readonly key: Uint8Array; readonly reason: number }
  | { readonly kind: 'health'; readonly code: number; readonly text: string }
  | { readonly kind: 'drain'; readonly reconnectInMs: number; readonly tryForMs: number };

/** Writes fields one after the other. */
class Writer {
  readonly #parts: Uint8Array[] = [];
  number(bytes: 1 | 2 | 4, value: number): this {
    const part = new Uint8Array(bytes);
    const view = new DataView(part.buffer);
    if (bytes === 1) view.setUint8(0, value);
    else if (bytes === 2) view.setUint16(0, value);
    else view.setUint32(0, value);
    this.#parts.push(part);
    return this;
  }
  bytes(field: string, size: number, value: Uint8Array): this {
    if (value.length !== size) throw new FrameError(`${field} has ${value.length} bytes: must have ${size}`);
    this.#parts.push(value);
    return this;
  }
  rest(value: Uint8Array): this {
    this.#parts.push(value);
    return this;
  }
  frame(type: number): Uint8Array {
    return encodeFrame(type, ...this.#parts);
  }
}

const big = (value: bigint): Uint8Array => {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, value);
  return bytes;
};

const encodeHello = ({ version, capabilities, nonce, extras }: Hello): Uint8Array => {
  const writer = new Writer().number(1, version).number(4, capabilities).bytes('nonce', CLIENT_NONCE_BYTES, nonce);
  for (const { tag, value } of extras) writer.number(1, tag).number(2, value.length).rest(value);
  return writer.frame(FRAME.hello);
};

const encodeChallenge = (message: Challenge): Uint8Array =>
  new Writer()
    .number(1, message.version)
    .number(4, message.capabilities)
    .bytes('ephemeralKey', KEY_BYTES, message.ephemeralKey)
    .bytes('relayKey', KEY_BYTES, message.relayKey)
    .bytes('nonce', RELAY_NONCE_BYTES, message.nonce)
    .number(4, message.expiresInMs)
    .frame(FRAME.challenge);

const encodeReady = (message: Ready): Uint8Array =>
  new Writer()
    .bytes('tag', TAG_BYTES, message.tag)
    .rest(big(message.session))
    .number(4, message.keepaliveMs)
    .number(4, message.idleTimeoutMs)
    .number(4, message.queueBytes)
    .number(4, message.bytesPerSecond)
    .frame(FRAME.ready);

/** @throws FrameError when a field has the wrong size */
export const encodeExtension = (message: ExtensionMessage): Uint8Array => {
  switch (message.kind) {
    case 'hello':
      return encodeHello(message);
    case 'challenge':
      return encodeChallenge(message);
    case 'proof':
      return new Writer().bytes('tag', TAG_BYTES, message.tag).frame(FRAME.proof);
    case 'ready':
      return encodeReady(message);
    case 'ping':
    case 'pong':
      return new Writer().bytes('data', PING_BYTES, message.data).frame(FRAME[message.kind]);
    case 'peerGone':
      return new Writer().bytes('key', KEY_BYTES, message.key).number(1, message.reason).frame(FRAME.peerGone);
    case 'health':
      return new Writer().number(1, message.code).rest(new TextEncoder().encode(message.text)).frame(FRAME.health);
    case 'drain':
      return new Writer().number(4, message.reconnectInMs).number(4, message.tryForMs).frame(FRAME.drain);
  }
};

/** Reads fields one after the other; views of the body. */
class Reader {
  readonly #name: string;
  readonly #body: Uint8Array;
  readonly #view: DataView;
  #at = 0;
  constructor(name: string, body: Uint8Array) {
    this.#name = name;
    this.#body = body;
    this.#view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  }
  get left(): number {
    return this.#body.length - this.#at;
  }
  #take(bytes: number): number {
    const at = this.#at;
    if (bytes > this.left)
      throw new FrameError(`${this.#name} has a body of ${this.#body.length} bytes: must have at least ${at + bytes}`);
    this.#at += bytes;
    return at;
  }
  u8 = (): number => this.#view.getUint8(this.#take(1));
  u16 = (): number => this.#view.getUint16(this.#take(2));
  u32 = (): number => this.#view.getUint32(this.#take(4));
  u64 = (): bigint => this.#view.getBigUint64(this.#take(8));
  bytes(size: number): Uint8Array {
    const at = this.#take(size);
    return this.#body.subarray(at, at + size);
  }
}

const readHello = (reader: Reader): Hello => {
  const head = { version: reader.u8(), capabilities: reader.u32(), nonce: reader.bytes(CLIENT_NONCE_BYTES) };
  const extras: Tlv[] = [];
  while (reader.left > 0) {
    const tag = reader.u8();
    extras.push({ tag, value: reader.bytes(reader.u16()) });
  }
  return { kind: 'hello', ...head, extras };
};

const readChallenge = (reader: Reader): Challenge => ({
  kind: 'challenge',
  version: reader.u8(),
  capabilities: reader.u32(),
  ephemeralKey: reader.bytes(KEY_BYTES),
  relayKey: reader.bytes(KEY_BYTES),
  nonce: reader.bytes(RELAY_NONCE_BYTES),
  expiresInMs: reader.u32(),
});

const readReady = (reader: Reader): Ready => ({
  kind: 'ready',
  tag: reader.bytes(TAG_BYTES),
  session: reader.u64(),
  keepaliveMs: reader.u32(),
  idleTimeoutMs: reader.u32(),
  queueBytes: reader.u32(),
  bytesPerSecond: reader.u32(),
});

/**
 * A message of the extension; undefined for any other type, Link frames included (link.codec.ts). Byte fields are views of
 * the frame. @throws FrameError
 */
export const decodeExtension = (frame: Uint8Array): ExtensionMessage | undefined => {
  const { type, body } = openFrame(frame);
  const reader = (name: string): Reader => new Reader(name, body);
  switch (type) {
    case FRAME.hello:
      return readHello(reader('Hello'));
    case FRAME.challenge:
      return readChallenge(reader('Challenge'));
    case FRAME.proof:
      return { kind: 'proof', tag: reader('Proof').bytes(TAG_BYTES) };
    case FRAME.ready:
      return readReady(reader('Ready'));
    case FRAME.ping:
      return { kind: 'ping', data: reader('Ping').bytes(PING_BYTES) };
    case FRAME.pong:
      return { kind: 'pong', data: reader('Pong').bytes(PING_BYTES) };
    case FRAME.peerGone: {
      const fields = reader('PeerGone');
      return { kind: 'peerGone', key: fields.bytes(KEY_BYTES), reason: fields.u8() };
    }
    case FRAME.health: {
      const fields = reader('Health');
      return { kind: 'health', code: fields.u8(), text: new TextDecoder().decode(fields.bytes(fields.left)) };
    }
    case FRAME.drain: {
      const fields = reader('Drain');
      return { kind: 'drain', reconnectInMs: fields.u32(), tryForMs: fields.u32() };
    }
    default:
      return undefined;
  }
};
