import type { Random } from '@unbounded/testing/seeded-random';

/** Random changes to inputs. The same seed makes the same changes. */

const INTERESTING = [0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 100, 127, 128, 255];
const INTERESTING_WORDS = [
  0, 1, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x1_0000, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff,
];

export interface Sources {
  readonly random: Random;
  readonly tokens: readonly Uint8Array[];
  /** Other inputs, for pieces of them. */
  readonly others: readonly Uint8Array[];
}

/** Replaces `count` bytes at `at`. */
const splice = (input: Uint8Array, at: number, count: number, piece: Uint8Array): Uint8Array => {
  const out = new Uint8Array(input.length - count + piece.length);
  out.set(input.subarray(0, at));
  out.set(piece, at);
  out.set(input.subarray(at + count), at + piece.length);
  return out;
};

type Mutation = (input: Uint8Array, sources: Sources) => Uint8Array;

const withByte = (input: Uint8Array, at: number, value: number): Uint8Array => {
  const out = input.slice();
  out[at] = value;
  return out;
};

const word: Mutation = (input, { random }) => {
  const size = random(2) === 0 ? 2 : 4;
  if (input.length < size) return input;
  const out = input.slice();
  const view = new DataView(out.buffer);
  const at = random(out.length - size + 1);
  const near = [input.length, input.length - at, input.length - at - size];
  const values = [...INTERESTING_WORDS, ...near];
  const value = values[random(values.length)]! + random(3) - 1;
  if (size === 2) view.setUint16(at, value, random(2) === 0);
  else view.setUint32(at, value, random(2) === 0);
  return out;
};

const range = (input: Uint8Array, random: Random): Uint8Array => {
  const at = random(input.length + 1);
  return input.subarray(at, at + random(Math.min(64, input.length - at) + 1));
};

const MUTATIONS: readonly Mutation[] = [
  (input, { random }) => {
    const at = random(input.length);
    return input.length === 0 ? input : withByte(input, at, input[at]! ^ (1 << random(8)));
  },
  (input, { random }) => (input.length === 0 ? input : withByte(input, random(input.length), random(256))),
  (input, { random }) =>
    input.length === 0 ? input : withByte(input, random(input.length), INTERESTING[random(INTERESTING.length)]!),
  word,
  word,
  (input, { random }) =>
    splice(
      input,
      random(input.length + 1),
      0,
      Uint8Array.from({ length: 1 + random(8) }, () => random(256)),
    ),
  (input, { random }) => {
    const at = random(input.length + 1);
    return splice(input, at, random(Math.min(32, input.length - at) + 1), new Uint8Array(0));
  },
  (input, { random }) => input.subarray(0, random(input.length + 1)),
  (input, { random }) => splice(input, random(input.length + 1), 0, range(input, random)),
  (input, { random, others }) =>
    others.length === 0
      ? input
      : splice(input, random(input.length + 1), 0, range(others[random(others.length)]!, random)),
  (input, { random, others }) => {
    const other = others[random(others.length)];
    return other
      ? splice(input, random(input.length + 1), 0, other).subarray(0, Math.max(input.length, other.length))
      : input;
  },
  (input, { random, tokens }) =>
    tokens.length === 0 ? input : splice(input, random(input.length + 1), 0, tokens[random(tokens.length)]!),
  (input, { random, tokens }) => {
    const token = tokens[random(tokens.length)];
    if (!token || token.length > input.length) return input;
    return splice(input, random(input.length - token.length + 1), token.length, token);
  },
];

/** One to eight changes, at most `maxBytes` long. */
export const mutate = (input: Uint8Array, sources: Sources, maxBytes: number): Uint8Array => {
  let out = input;
  for (let left = 1 << sources.random(4); left > 0; left--)
    out = MUTATIONS[sources.random(MUTATIONS.length)]!(out, sources).subarray(0, maxBytes);
  return out.slice();
};
