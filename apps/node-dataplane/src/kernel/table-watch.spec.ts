import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { rateLimited } from './table-watch.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

const LIMIT = { burst: 5, everyMs: 2000 };

test('a change is told of at once', () => {
  const act = vi.fn();
  rateLimited(act, LIMIT).ask();
  expect(act).toHaveBeenCalledTimes(1);
});

test('somebody who never stops gets the burst, and then one in each interval', () => {
  const act = vi.fn();
  const { ask, stop } = rateLimited(act, LIMIT);
  for (let ms = 0; ms < 20_000; ms += 10) {
    ask();
    vi.advanceTimersByTime(10);
  }
  expect(act.mock.calls.length).toBeGreaterThanOrEqual(14);
  expect(act.mock.calls.length).toBeLessThanOrEqual(15);
  stop();
});

test('the last change of many is told of, too', () => {
  const act = vi.fn();
  const { ask } = rateLimited(act, LIMIT);
  for (let count = 0; count < 100; count++) ask();
  expect(act).toHaveBeenCalledTimes(5);
  vi.advanceTimersByTime(2000);
  expect(act).toHaveBeenCalledTimes(6);
  vi.advanceTimersByTime(60_000);
  expect(act).toHaveBeenCalledTimes(6);
});

test('who stopped asks for nothing any more', () => {
  const act = vi.fn();
  const { ask, stop } = rateLimited(act, { burst: 1, everyMs: 2000 });
  ask();
  ask();
  stop();
  vi.advanceTimersByTime(10_000);
  expect(act).toHaveBeenCalledTimes(1);
});
