import { expect, test } from 'vitest';

import { Crowd } from './crowd.ts';

interface One {
  readonly name: string;
}
const [a, b, c, d, e, f] = 'abcdef'.split('').map((name): One => ({ name })) as [One, One, One, One, One, One];

test('of too many the oldest of the address with the most has to go', () => {
  const crowd = new Crowd<One>(4);
  expect([crowd.enter(a, 'x'), crowd.enter(b, 'y'), crowd.enter(c, 'y'), crowd.enter(d, 'y')]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  expect(crowd.enter(e, 'z')).toBe(b);
  crowd.leave(b);
  crowd.rename(e, 'x');
  crowd.rename(d, 'x');
  expect(crowd.enter(f, 'z')).toBe(a);
  crowd.leave(a);
  expect(crowd.size).toBe(4);
});

test('who was let in counts no more', () => {
  const crowd = new Crowd<One>(1);
  crowd.enter(a, 'x');
  crowd.leave(a);
  crowd.leave(a);
  expect(crowd.enter(b, 'x')).toBeUndefined();
  expect(crowd.oldestOf('x')).toBe(b);
  expect(crowd.oldestOf('y')).toBeUndefined();
});
