import { expect, test } from 'vitest';
import { createRunningClock } from './running-clock.ts';

test('time passes as it does, but for a stop of the program, which counts as two ticks', () => {
  let elapsedMs = 1000;
  const clock = createRunningClock(100, () => elapsedMs);
  const after = (ms: number): number => {
    elapsedMs += ms;
    return clock.now();
  };
  expect([after(0), after(60), after(40)]).toEqual([0, 60, 100]);
  clock.tick();
  expect([after(0), after(150)]).toEqual([100, 250]);
  clock.tick();
  expect([after(60_000), after(60_000)]).toEqual([450, 450]);
  clock.tick();
  expect([after(0), after(30)]).toEqual([450, 480]);
});
