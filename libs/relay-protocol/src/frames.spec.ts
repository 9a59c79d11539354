import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import badLengths from '../testdata/bad-lengths.json' with { type: 'json' };
import frames from '../testdata/frames.json' with { type: 'json' };
import malformed from '../testdata/malformed.json' with { type: 'json' };
import {
  decodeExtension,
  decodeLink,
  decodeMessage,
  encodeData,
  encodeError,
  encodeExtension,
  encodeFrame,
  encodeGone,
  encodeIdentity,
  encodeKeepalive,
  encodePresent,
  encodeRegister,
  type ExtensionMessage,
  FORWARD_HEAD_BYTES,
  FORWARD_DESTINATION_AT,
  FORWARD_SENDER_AT,
  FRAME,
  FrameError,
  frameEnd,
  type LinkMessage,
  MAX_FRAME_BYTES,
  MAX_PAYLOAD_BYTES,
  type Message,
  writeForwardHead,
} from './index.ts';

const bytesOf = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, 'hex'));
const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** Bytes and big numbers as text, as the vectors have them. */
const plain = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (_key, field: unknown) =>
      field instanceof Uint8Array ? hexOf(field) : typeof field === 'bigint' ? String(field) : field,
    ),
  );

const decode = (frame: Uint8Array): Message | ExtensionMessage | LinkMessage | undefined => {
  const message = decodeMessage(frame);
  if (message.kind !== 'unknown') return message;
  return message.type === FRAME.link ? decodeLink(frame) : decodeExtension(frame);
};

const encode = (message: ReturnType<typeof decode>): Uint8Array => {
  switch (message?.kind) {
    case 'register':
      return encodeRegister(message.key);
    case 'data':
      return encodeData(message.key, message.payload);
    case 'keepalive':
      return encodeKeepalive();
    case 'error':
      return encodeError(message.text);
    case 'identity':
      return encodeIdentity(message.id);
    case 'present':
      return encodePresent(message.peers);
    case 'gone':
      return encodeGone(message.keys);
    case 'forward': {
      const frame = new Uint8Array(FORWARD_HEAD_BYTES + message.payload.length);
      writeForwardHead(frame, 0, message.payload.length);
      frame.set(message.destination, FORWARD_DESTINATION_AT);
      frame.set(message.sender, FORWARD_SENDER_AT);
      frame.set(message.payload, FORWARD_HEAD_BYTES);
      return frame;
    }
    default:
      return encodeExtension(message as ExtensionMessage);
  }
};

describe('frames', () => {
  test.each(frames)('$name: the bytes of the protocol page', ({ frame, message }) => {
    const decoded = decode(bytesOf(frame));
    expect(plain(decoded)).toEqual(message);
    expect(hexOf(encode(decoded))).toBe(frame);
  });

  test.each(malformed)('$name is refused', ({ frame }) => {
    expect(() => decode(bytesOf(frame))).toThrow(FrameError);
  });

  test.each(badLengths)('$name: known as bad from the first four bytes', ({ bytes }) => {
    expect(frameEnd(bytesOf(bytes), 0, 4)).toBe(-1);
    expect(frameEnd(bytesOf(bytes), 0, 3)).toBe(0);
  });

  test('fields behind those of this version are ignored', () => {
    const ping = encodeFrame(FRAME.ping, new Uint8Array(9));
    expect(decodeExtension(ping)).toMatchObject({ kind: 'ping' });
    const keepalive = encodeFrame(FRAME.keepalive, new Uint8Array(3));
    expect(decodeMessage(keepalive)).toEqual({ kind: 'keepalive' });
  });

  test('the longest Data frame is legal, a byte more is refused and named', () => {
    const key = new Uint8Array(32);
    expect(encodeData(key, new Uint8Array(MAX_PAYLOAD_BYTES))).toHaveLength(MAX_FRAME_BYTES);
    expect(() => encodeData(key, new Uint8Array(MAX_PAYLOAD_BYTES + 1))).toThrow(/length 65537: at most 65536/);
    expect(() => encodeRegister(new Uint8Array(31))).toThrow(/31 bytes/);
  });

  test('a decoder given random bytes throws nothing but FrameError', () => {
    const types = fc.constantFrom(1, 2, 3, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0xff, 0x77);
    const framed = fc.tuple(types, fc.uint8Array({ maxLength: 200 })).map(([type, body]) => encodeFrame(type, body));
    fc.assert(
      fc.property(fc.oneof(framed, fc.uint8Array({ maxLength: 64 })), (bytes) => {
        for (const decoder of [decodeMessage, decodeExtension, decodeLink]) {
          try {
            decoder(bytes);
          } catch (error) {
            expect(error).toBeInstanceOf(FrameError);
          }
        }
      }),
      { numRuns: 3000 },
    );
  });

  test('what is decoded encodes to the same bytes', () => {
    const bytes = (size: number) => fc.uint8Array({ minLength: size, maxLength: size });
    const u32 = fc.integer({ min: 0, max: 0xffff_ffff });
    const message: fc.Arbitrary<ExtensionMessage> = fc.oneof(
      fc.record({
        kind: fc.constant('hello' as const),
        version: fc.integer({ min: 0, max: 255 }),
        capabilities: u32,
        nonce: bytes(16),
        extras: fc.array(
          fc.record({ tag: fc.integer({ min: 0, max: 255 }), value: fc.uint8Array({ maxLength: 40 }) }),
          { maxLength: 4 },
        ),
      }),
      fc.record({
        kind: fc.constant('ready' as const),
        tag: bytes(32),
        session: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
        keepaliveMs: u32,
        idleTimeoutMs: u32,
        queueBytes: u32,
        bytesPerSecond: u32,
      }),
      fc.record({ kind: fc.constant('drain' as const), reconnectInMs: u32, tryForMs: u32 }),
    );
    fc.assert(
      fc.property(message, (value) => {
        expect(plain(decodeExtension(encodeExtension(value)))).toEqual(plain(value));
      }),
    );
  });
});
