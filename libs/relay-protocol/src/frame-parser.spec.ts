import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import frames from '../testdata/frames.json' with { type: 'json' };
import { BlockPool, encodeData, FrameError, frameEnd, FrameParser, MAX_FRAME_BYTES, PartialFrame } from './index.ts';

const bytesOf = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, 'hex'));
const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const all = frames.map(({ frame }) => frame);
const stream = bytesOf(all.join(''));

/** Frames that come out when the stream is pushed in these pieces. */
const parse = (pieces: readonly Uint8Array[]): string[] => {
  const parser = new FrameParser();
  const got: string[] = [];
  for (const piece of pieces) parser.push(piece, (bytes, start, end) => got.push(hexOf(bytes.subarray(start, end))));
  return got;
};

const cut = (bytes: Uint8Array, at: readonly number[]): Uint8Array[] => {
  const cuts = [0, ...at.toSorted((a, b) => a - b), bytes.length];
  return cuts.slice(1).map((end, index) => bytes.subarray(cuts[index], end));
};

describe('the parser', () => {
  test('gives every frame of a stream that comes byte by byte', () => {
    expect(parse(Array.from(stream, (byte) => Uint8Array.of(byte)))).toEqual(all);
  });

  test('gives the same frames wherever the stream is cut once', () => {
    for (let at = 0; at <= stream.length; at++) expect(parse(cut(stream, [at]))).toEqual(all);
  });

  test('gives the same frames however the stream is cut', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: stream.length })), (at) => {
        expect(parse(cut(stream, at))).toEqual(all);
      }),
    );
  });

  test('gives whole frames of a piece in place, without a copy', () => {
    const parser = new FrameParser();
    parser.push(stream, (bytes) => expect(bytes).toBe(stream));
    expect(parser.pending).toBe(0);
  });

  test('refuses a length of 4 GiB with its fourth byte, having given what came before', () => {
    const parser = new FrameParser();
    const got: number[] = [];
    const piece = bytesOf(`${all[0]}ffffff`);
    parser.push(piece, (_bytes, _start, end) => got.push(end));
    expect(() => parser.push(Uint8Array.of(0xff), () => got.push(0))).toThrow(/4294967295: 1 to 65536/);
    expect(got).toEqual([piece.length - 3]);
  });

  test('random bytes are frames or a FrameError, and never more frames than bytes', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 30 })), (pieces) => {
        try {
          const got = parse(pieces);
          expect(got.length * 5).toBeLessThanOrEqual(pieces.reduce((sum, piece) => sum + piece.length, 0));
        } catch (error) {
          expect(error).toBeInstanceOf(FrameError);
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe('the beginning of a frame', () => {
  test('is put back in front of what follows', () => {
    const pool = new BlockPool();
    const frame = encodeData(new Uint8Array(32).fill(7), new Uint8Array(3000).fill(4));
    const target = new Uint8Array(MAX_FRAME_BYTES + 4096);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: frame.length - 1 }), { maxLength: 5 }), (at) => {
        const pieces = cut(frame, at);
        const last = pieces.pop()!;
        const partial = new PartialFrame();
        for (const piece of pieces) partial.append(piece, 0, piece.length, pool);
        target.set(last, MAX_FRAME_BYTES);
        const start = partial.restore(target, MAX_FRAME_BYTES, pool);
        const end = frameEnd(target, start, MAX_FRAME_BYTES + last.length);
        expect(Buffer.from(target.subarray(start, end)).equals(frame)).toBe(true);
        expect(partial.length).toBe(0);
      }),
    );
  });

  test('says how much is missing as soon as its length is there', () => {
    const pool = new BlockPool();
    const partial = new PartialFrame();
    expect(partial.missing).toBe(4);
    partial.append(Uint8Array.of(0, 0, 1), 0, 3, pool);
    expect(partial.missing).toBe(1);
    partial.append(Uint8Array.of(0), 0, 1, pool);
    expect(partial.missing).toBe(256);
  });
});
