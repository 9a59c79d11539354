import { expect, test } from 'vitest';
import { growthBelow } from './growth.ts';

const loop = (times: number) => (): void => {
  let sum = 0;
  for (let at = 0; at < times; at++) sum += at & 3;
  if (sum < 0) throw new Error('not computed');
};

test('what grows in proportion is below a bound between that and its square, and what grows with the square is not', () => {
  expect(growthBelow(40, loop(1e5), loop(1e6))).toBeLessThan(40);
  expect(growthBelow(40, loop(1e5), loop(1e7))).toBeGreaterThan(40);
});
