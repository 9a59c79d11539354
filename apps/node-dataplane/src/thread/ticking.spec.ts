import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { startTicking } from './ticking.ts';

const INTERVAL_MS = 100;

/** When ticks came, from the first one on. */
let ticksMs: number[];
/** For how long the thread was held up so far: the clock went on, and no timer ran. */
let heldMs: number;
let stop: () => void;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate', 'performance'] });
  heldMs = 0;
  const timersNow = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => timersNow() + heldMs);
  ticksMs = [];
  stop = startTicking(
    () => INTERVAL_MS,
    () => void ticksMs.push(performance.now()),
  );
  while (ticksMs.length === 0) vi.advanceTimersByTime(1);
});
afterEach(() => {
  stop();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const pauses = (): number[] => ticksMs.slice(1).map((at, index) => Math.round(at - ticksMs[index]!));

test('ticks come at steady intervals', () => {
  vi.advanceTimersByTime(10 * INTERVAL_MS + 1);
  expect(pauses()).toEqual(Array(10).fill(INTERVAL_MS));
});

test('one that is a little late moves none of the others', () => {
  heldMs += 30;
  vi.advanceTimersByTime(4 * INTERVAL_MS);
  expect(pauses().slice(0, 3)).toEqual([INTERVAL_MS + 30, INTERVAL_MS - 30, INTERVAL_MS]);
});

test.each([60, 100, 250, 5000])('after %i ms in which the thread was held up nothing is made up for', (ms) => {
  heldMs += ms;
  vi.advanceTimersByTime(4 * INTERVAL_MS);
  expect(pauses().slice(0, 3)).toEqual([INTERVAL_MS + ms, INTERVAL_MS, INTERVAL_MS]);
});

test('after it is stopped none comes', () => {
  stop();
  vi.advanceTimersByTime(10 * INTERVAL_MS);
  expect(ticksMs).toHaveLength(1);
});
