/**
 * A frame, in both directions (document 002): `u32be length | u8 type | body`. The length counts type and body but not
 * its own four bytes, and is 1 to 65,536. A legal frame therefore begins with 0x00, and a TLS ClientHello (0x16) on the
 * same port is told from it by its first byte.
 *
 * 1. A client connects and sends Register, as its first frame. A relay says nothing to that by itself.
 * 2. It may send Hello in the same write. A relay without the extension ignores it (unknown types are ignored after
 *    Register, in both directions); one with it answers Challenge, the client Proof, the relay Ready.
 * 3. Data carries the destination's key to the relay, and the sender's from it. Keepalive every 25 s.
 */

/** Bytes of the length field and the type. */
export const HEADER_BYTES = 5;
export const LENGTH_BYTES = 4;
/** Type and body. */
export const MAX_LENGTH = 65_536;
export const KEY_BYTES = 32;
/** Bytes in front of a Data frame's payload. */
export const DATA_HEAD_BYTES = HEADER_BYTES + KEY_BYTES;
export const MAX_PAYLOAD_BYTES = MAX_LENGTH - 1 - KEY_BYTES;
/** Longest frame in all. */
export const MAX_FRAME_BYTES = LENGTH_BYTES + MAX_LENGTH;
/** Length field of a Register. */
export const REGISTER_LENGTH = 1 + KEY_BYTES;

/** Clients send Keepalive this often: document 002 says every 30 s; this leaves room for delays. */
export const KEEPALIVE_MS = 25_000;

/** Type codes; 0x01 to 0x03 and 0xff are document 002's, those from 0x40 on the extension's. */
export const FRAME = {
  register: 0x01,
  data: 0x02,
  keepalive: 0x03,
  hello: 0x40,
  challenge: 0x41,
  proof: 0x42,
  ready: 0x43,
  ping: 0x44,
  pong: 0x45,
  peerGone: 0x46,
  health: 0x47,
  drain: 0x48,
  link: 0x49,
  error: 0xff,
} as const;

/** Bytes from outside that are no legal frame or message. Decoders and parsers throw nothing else. */
export class FrameError extends Error {
  override readonly name = 'FrameError';
}

/**
 * End of the frame that begins at `at`, when all of it lies before `end`; 0 when more bytes are needed, -1 when its length
 * is illegal, which is known as soon as the four bytes are there.
 */
export const frameEnd = (bytes: Uint8Array, at: number, end: number, maxLength: number = MAX_LENGTH): number => {
  if (end - at < LENGTH_BYTES) return 0;
  const length = lengthAt(bytes, at);
  if (length === 0 || length > maxLength) return -1;
  const next = at + LENGTH_BYTES + length;
  return next > end ? 0 : next;
};

/** The length field at `at`, which must be there. */
export const lengthAt = (bytes: Uint8Array, at: number): number =>
  ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;

/** A frame of one type with a body in parts. @throws FrameError when it is too long */
export const encodeFrame = (type: number, ...body: readonly Uint8Array[]): Uint8Array => {
  const length = body.reduce((sum, part) => sum + part.length, 1);
  if (length > MAX_LENGTH)
    throw new FrameError(`frame of type ${type} has length ${length}: at most ${MAX_LENGTH} is legal`);
  const frame = new Uint8Array(LENGTH_BYTES + length);
  new DataView(frame.buffer).setUint32(0, length);
  frame[LENGTH_BYTES] = type;
  let at = HEADER_BYTES;
  for (const part of body) {
    frame.set(part, at);
    at += part.length;
  }
  return frame;
};
