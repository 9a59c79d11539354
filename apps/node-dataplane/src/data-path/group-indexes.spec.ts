import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createGroupIndexes } from './group-indexes.ts';

test('every group has a number of its own, within 1 and 65535, and keeps it', () => {
  fc.assert(
    fc.property(fc.array(fc.string()), (names) => {
      const indexes = createGroupIndexes();
      const first = names.map((name) => indexes.indexOf(name));
      expect(names.map((name) => indexes.indexOf(name))).toEqual(first);
      expect(new Set(first).size).toBe(new Set(names).size);
      expect(first.every((index) => index >= 1 && index <= 0xffff)).toBe(true);
    }),
  );
});

test('a successor knows the numbers', () => {
  const first = createGroupIndexes();
  const numbers = ['a', 'b', '__proto__'].map((name) => first.indexOf(name));
  const text = JSON.stringify(first.toJSON());
  const second = createGroupIndexes(JSON.parse(text) as Record<string, number>);
  expect(['a', 'b'].map((name) => second.indexOf(name))).toEqual(numbers.slice(0, 2));
});

test('the number of a group that is no more is given again, the others stay', () => {
  const indexes = createGroupIndexes({ a: 1, b: 2, c: 3 });
  indexes.keepOnly(new Set(['a', 'c']));
  expect([indexes.indexOf('new'), indexes.indexOf('a'), indexes.indexOf('c')]).toEqual([2, 1, 3]);
});

test('when all numbers are given the error names the group', () => {
  const full = Object.fromEntries(Array.from({ length: 0xffff }, (_, index) => [`g${index}`, index + 1]));
  expect(() => createGroupIndexes(full).indexOf('one-more')).toThrow(/one-more: 65535 groups exist/);
});
