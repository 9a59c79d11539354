import { expect, test } from 'vitest';
import { includes } from './position.ts';

test.each([
  ['h-3', 'h-3', true],
  ['h-3', 'h-2', true],
  ['h-10', 'h-9', true],
  ['h-3', 'h-4', false],
  ['h-3', 'g-2', false],
  ['x', 'x', true],
  ['2', '1', false],
])('who is at %s has had %s: %s', (known, position, has) => {
  expect(includes(known, position)).toBe(has);
});
