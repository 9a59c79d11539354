import type { FuzzTarget } from '@unbounded/testing';

/** Walks records of `u8 length`: one of length 0 is walked for ever. */
export const target: FuzzTarget = {
  seeds: [Uint8Array.of(2, 0, 1)],
  maxBytes: 64,
  run: (input) => {
    for (let at = 0; at < input.length;) at += input[at]!;
  },
};
