import { randomBytes } from 'node:crypto';

import fc from 'fast-check';
import { expect, test } from 'vitest';

import { parseAllowedKeys } from './allowed-keys.codec.ts';

const key = (): string => randomBytes(32).toString('base64');

test('keys, one a line, with comments and blank lines', () => {
  const [a, b] = [key(), key()];
  expect(parseAllowedKeys(`# keys of the cluster\n${a}\n\n  ${b}  # worker-2\r\n${a}\n`)).toEqual(new Set([a, b]));
  expect(parseAllowedKeys('')).toEqual(new Set());
});

test.each(['short', `${key()}A`, key().slice(0, -1), `${'A'.repeat(42)}B=`, 'A'.repeat(44)])(
  '"%s" is refused',
  (line) => {
    expect(() => parseAllowedKeys(`${key()}\n${line}`)).toThrow('line 2');
  },
);

test('every key of 32 bytes is taken, as Node writes it', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
      const text = Buffer.from(bytes).toString('base64');
      expect(parseAllowedKeys(text).has(text)).toBe(true);
    }),
  );
});
