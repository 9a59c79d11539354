import assert from 'node:assert/strict';
import type { FuzzTarget } from '@unbounded/testing';
import { decodeExtension, encodeExtension } from './extension.codec.ts';
import { encodeFrame, FRAME, FrameError } from './frame.ts';
import { FrameParser } from './frame-parser.ts';
import { decodeLink, encodeGone, encodeIdentity, encodePresent, MAX_LINK_LENGTH } from './link.codec.ts';
import { decodeMessage, encodeData, encodeError, encodeKeepalive, encodeRegister } from './messages.codec.ts';

/**
 * What a stranger sends to a relay, or a relay to a client. Input: a byte for the size of the pieces in which the stream
 * comes (0: in one), a byte of which the lowest bit says that it is a link between replicas, then the stream.
 */

/** Undefined where the bytes are refused as they should be. */
const refused = <T>(read: () => T): T | undefined => {
  try {
    return read();
  } catch (error) {
    if (error instanceof FrameError) return undefined;
    throw error;
  }
};

/** The frames of a stream, and whether it ended with an illegal length. */
const framesOf = (
  stream: Uint8Array,
  piece: number,
  maxLength: number | undefined,
): readonly [Uint8Array[], boolean] => {
  const parser = new FrameParser(maxLength);
  const frames: Uint8Array[] = [];
  const isLegal = refused(() => {
    for (let at = 0; at < stream.length; at += piece)
      parser.push(stream.slice(at, at + piece), (bytes, start, end) => frames.push(bytes.slice(start, end)));
    return true;
  });
  return [frames, isLegal ?? false];
};

/** What is written from what was read is read as the same again. */
const decodeAll = (frame: Uint8Array): void => {
  refused(() => decodeMessage(frame));
  refused(() => decodeLink(frame));
  const message = refused(() => decodeExtension(frame));
  const written = message && refused(() => encodeExtension(message));
  if (written) assert.deepEqual(decodeExtension(written), message);
};

const run = (input: Uint8Array): void => {
  const [size = 0, kind = 0] = input;
  const stream = input.subarray(2);
  const maxLength = (kind & 1) === 0 ? undefined : MAX_LINK_LENGTH;
  const [whole, isLegal] = framesOf(stream, stream.length || 1, maxLength);
  const inPieces = framesOf(stream, size || stream.length || 1, maxLength);
  assert.deepEqual(inPieces, [whole, isLegal]);
  for (const frame of whole) decodeAll(frame);
};

const key = new Uint8Array(32).fill(7);
const extension = [
  { kind: 'hello', version: 1, capabilities: 15, nonce: new Uint8Array(16), extras: [{ tag: 1, value: key }] },
  { kind: 'challenge', version: 1, capabilities: 3, ephemeralKey: key, relayKey: key, nonce: key, expiresInMs: 5 },
  { kind: 'proof', tag: key },
  { kind: 'ready', tag: key, session: 3n, keepaliveMs: 1, idleTimeoutMs: 2, queueBytes: 3, bytesPerSecond: 0 },
  { kind: 'ping', data: new Uint8Array(8) },
  { kind: 'peerGone', key, reason: 1 },
  { kind: 'health', code: 2, text: 'slow' },
  { kind: 'drain', reconnectInMs: 1, tryForMs: 2 },
] as const;
const client = [
  encodeRegister(key),
  encodeData(key, Uint8Array.of(1, 2, 3)),
  encodeKeepalive(),
  encodeError('no'),
  ...extension.map(encodeExtension),
];
const links = [encodeIdentity(new Uint8Array(16)), encodePresent([{ key, proven: true }]), encodeGone([key])];
const asInput = (pieces: number, kind: number, ...frames: Uint8Array[]): Uint8Array =>
  Uint8Array.from([pieces, kind, ...frames.flatMap((frame) => [...frame])]);

export const target: FuzzTarget = {
  run,
  seeds: [
    ...client.map((frame) => asInput(0, 0, frame)),
    ...links.map((frame) => asInput(3, 1, frame)),
    asInput(0, 1, encodeFrame(FRAME.link, Uint8Array.of(3), key, key, key)),
    asInput(5, 0, ...client.slice(0, 3)),
  ],
  tokens: [
    ...Object.values(FRAME).map((type) => Uint8Array.of(0, 0, 0, 1, type)),
    Uint8Array.of(0, 1, 0, 0),
    Uint8Array.of(0, 1, 0, 1),
    key,
  ],
  maxBytes: 1024,
};
