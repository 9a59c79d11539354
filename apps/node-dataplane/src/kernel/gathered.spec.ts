import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { gathered } from './gathered.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('of what is asked for within the time one is done, and what comes later is done, too', () => {
  const act = vi.fn();
  const { ask } = gathered(act, 100);
  ask();
  vi.advanceTimersByTime(99);
  ask();
  expect(act).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1000);
  expect(act).toHaveBeenCalledTimes(1);
  ask();
  vi.advanceTimersByTime(100);
  expect(act).toHaveBeenCalledTimes(2);
});

test('behind the end nothing is done', () => {
  const act = vi.fn();
  const { ask, stop } = gathered(act, 100);
  ask();
  stop();
  vi.advanceTimersByTime(1000);
  expect(act).not.toHaveBeenCalled();
});
