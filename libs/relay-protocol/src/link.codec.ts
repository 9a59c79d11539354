import { encodeFrame, FRAME, FrameError, HEADER_BYTES, KEY_BYTES, LENGTH_BYTES, MAX_LENGTH } from './frame.ts';
import { openFrame } from './messages.codec.ts';

/**
 * Links between replicas of a relay: frames of type 0x49 on a port of their own, inside TLS with a pre-shared key. Their
 * body is `u8 kind` and:
 *
 * | kind       | fields                                                                                      |
 * | ---------- | ------------------------------------------------------------------------------------------- |
 * | 0 identity | u8 version 1, 16 B id of the replica; the first frame of both ends                          |
 * | 1 present  | any number of: 32 B key, u8 flags (1: proven); what is registered at the sender of the frame |
 * | 2 gone     | any number of 32 B keys                                                                     |
 * | 3 forward  | 32 B destination, 32 B sender, payload; delivered to a client there, never forwarded again  |
 *
 * A forward frame holds a key more than the Data frame it comes from, so frames of links may be longer (MAX_LINK_LENGTH).
 * The destination stands in front of the sender, so that the receiver makes the Data frame in place: its head overwrites
 * the end of the destination's key.
 */
export const LINK = { identity: 0, present: 1, gone: 2, forward: 3 } as const;
const LINK_VERSION = 1;
const RELAY_ID_BYTES = 16;
export const MAX_LINK_LENGTH = MAX_LENGTH + 1 + KEY_BYTES;
/** Bytes in front of a forward frame's payload. */
export const FORWARD_HEAD_BYTES = HEADER_BYTES + 1 + 2 * KEY_BYTES;
/** Where in a forward frame its destination and its sender stand. */
export const FORWARD_DESTINATION_AT = HEADER_BYTES + 1;
export const FORWARD_SENDER_AT = FORWARD_DESTINATION_AT + KEY_BYTES;

const ENTRY_BYTES = KEY_BYTES + 1;
/** Entries of one present or gone frame. */
export const MAX_KEYS_PER_FRAME = Math.floor((MAX_LENGTH - 2) / ENTRY_BYTES);
const PROVEN = 1;

export interface Presence {
  readonly key: Uint8Array;
  readonly proven: boolean;
}
export type LinkMessage =
  | { readonly kind: 'identity'; readonly version: number; readonly id: Uint8Array }
  | { readonly kind: 'present'; readonly peers: readonly Presence[] }
  | { readonly kind: 'gone'; readonly keys: readonly Uint8Array[] }
  | {
      readonly kind: 'forward';
      readonly destination: Uint8Array;
      readonly sender: Uint8Array;
      readonly payload: Uint8Array;
    };

const kindByte = (kind: number): Uint8Array => Uint8Array.of(kind);

/** @throws FrameError when it holds more keys than a frame does */
export const encodePresent = (peers: readonly Presence[]): Uint8Array =>
  encodeFrame(
    FRAME.link,
    kindByte(LINK.present),
    ...peers.flatMap(({ key, proven }) => [key, Uint8Array.of(proven ? PROVEN : 0)]),
  );
export const encodeGone = (keys: readonly Uint8Array[]): Uint8Array =>
  encodeFrame(FRAME.link, kindByte(LINK.gone), ...keys);
export const encodeIdentity = (id: Uint8Array): Uint8Array =>
  encodeFrame(FRAME.link, Uint8Array.of(LINK.identity, LINK_VERSION), id);

/** Head of a forward frame, for a payload of that many bytes; keys and payload are the caller's to put behind it. */
export const writeForwardHead = (target: Uint8Array, at: number, payloadBytes: number): void => {
  const view = new DataView(target.buffer, target.byteOffset + at, FORWARD_DESTINATION_AT);
  view.setUint32(0, FORWARD_HEAD_BYTES - LENGTH_BYTES + payloadBytes);
  view.setUint8(LENGTH_BYTES, FRAME.link);
  view.setUint8(HEADER_BYTES, LINK.forward);
};

const entries = (name: string, body: Uint8Array, size: number): Uint8Array[] => {
  if (body.length % size !== 0)
    throw new FrameError(`${name} has ${body.length} bytes of entries: a multiple of ${size} is right`);
  return Array.from({ length: body.length / size }, (_, index) => body.subarray(index * size, (index + 1) * size));
};

/** Fields are views of the frame; undefined for a kind of a later version. @throws FrameError */
export const decodeLink = (frame: Uint8Array): LinkMessage | undefined => {
  const { type, body } = openFrame(frame);
  if (type !== FRAME.link || body.length === 0)
    throw new FrameError(`frame of type ${type} with a body of ${body.length} bytes is no Link frame`);
  const fields = body.subarray(1);
  switch (body[0]) {
    case LINK.identity:
      if (fields.length < 1 + RELAY_ID_BYTES)
        throw new FrameError(`identity has ${fields.length} bytes: must have at least ${1 + RELAY_ID_BYTES}`);
      return { kind: 'identity', version: fields[0]!, id: fields.subarray(1, 1 + RELAY_ID_BYTES) };
    case LINK.present: {
      const peers = entries('present', fields, ENTRY_BYTES);
      return {
        kind: 'present',
        peers: peers.map((entry) => ({
          key: entry.subarray(0, KEY_BYTES),
          proven: (entry[KEY_BYTES]! & PROVEN) !== 0,
        })),
      };
    }
    case LINK.gone:
      return { kind: 'gone', keys: entries('gone', fields, KEY_BYTES) };
    case LINK.forward:
      if (fields.length < 2 * KEY_BYTES)
        throw new FrameError(`forward has ${fields.length} bytes: must have at least two keys of ${KEY_BYTES}`);
      return {
        kind: 'forward',
        destination: fields.subarray(0, KEY_BYTES),
        sender: fields.subarray(KEY_BYTES, 2 * KEY_BYTES),
        payload: fields.subarray(2 * KEY_BYTES),
      };
    default:
      return undefined;
  }
};
