import fc from 'fast-check';
import { expect, test } from 'vitest';

import { sameJson } from './same-json.ts';

test('a value is the same as its copy with the fields in another order', () => {
  const reversed = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(reversed)
      : typeof value === 'object' && value !== null
        ? Object.fromEntries(
            Object.entries(value)
              .reverse()
              .map(([name, field]) => [name, reversed(field)]),
          )
        : value;
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(sameJson(value, reversed(value))).toBe(true);
    }),
  );
});

test.each([
  [{ a: 1 }, { a: 2 }],
  [{ a: 1 }, { a: 1, b: null }],
  [
    [1, 2],
    [2, 1],
  ],
  [[], {}],
  [null, {}],
  [{ 0: 'a' }, ['a']],
])('%j is not %j', (a, b) => expect(sameJson(a, b)).toBe(false));

test('an undefined field is an absent one', () => expect(sameJson({ a: undefined }, {})).toBe(true));
