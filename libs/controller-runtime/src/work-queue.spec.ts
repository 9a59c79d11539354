import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { backoffDelay } from './backoff.ts';
import { WorkQueue } from './work-queue.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());
const backoff = { baseMs: 10, maxMs: 1000, random: () => 0 };

test('a key that is added twice is handed out once', async () => {
  const queue = new WorkQueue();
  queue.add('a');
  queue.add('a');
  queue.add('b');
  expect([await queue.take(), await queue.take()]).toEqual(['a', 'b']);
  expect(queue.depth).toBe(0);
});

test('a key that is added while being worked on comes back when that is done, and not before', async () => {
  const queue = new WorkQueue();
  queue.add('a');
  await queue.take();
  queue.add('a');
  queue.add('a');
  const next = vi.fn<(key: string | undefined) => void>();
  void queue.take().then(next);
  await vi.advanceTimersByTimeAsync(0);
  expect(next).not.toHaveBeenCalled();
  queue.done('a');
  await vi.advanceTimersByTimeAsync(0);
  expect(next).toHaveBeenCalledExactlyOnceWith('a');
});

test('of two delays for a key the shorter holds', async () => {
  const queue = new WorkQueue();
  queue.addAfter('a', 100);
  queue.addAfter('a', 50);
  queue.addAfter('a', 70);
  await vi.advanceTimersByTimeAsync(49);
  expect(queue.depth).toBe(0);
  await vi.advanceTimersByTimeAsync(1);
  expect(queue.depth).toBe(1);
  expect(vi.getTimerCount()).toBe(0);
});

test('failures wait longer and longer until the key is forgotten', async () => {
  const queue = new WorkQueue({ backoff });
  const delayOf = async (): Promise<number> => {
    queue.retry('a');
    let waitedMs = 0;
    while (queue.depth === 0) {
      await vi.advanceTimersByTimeAsync(1);
      waitedMs++;
    }
    queue.done((await queue.take())!);
    return waitedMs;
  };
  expect([await delayOf(), await delayOf(), await delayOf()]).toEqual([5, 10, 20]);
  queue.forget('a');
  expect(await delayOf()).toBe(5);
});

test('closing ends those who wait and drops what waits', async () => {
  const queue = new WorkQueue();
  const waiting = queue.take();
  queue.addAfter('later', 10);
  queue.close();
  queue.add('a');
  expect(await waiting).toBeUndefined();
  expect(await queue.take()).toBeUndefined();
  expect(vi.getTimerCount()).toBe(0);
});

test('no key is ever worked on twice at once, and none is lost', async () => {
  vi.useRealTimers();
  const actions = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.nat(3)), { minLength: 1, maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(actions, async (adds) => {
      const queue = new WorkQueue();
      const working = new Set<string>();
      const lastAdd = new Map<string, number>();
      const lastStart = new Map<string, number>();
      let step = 0;
      const worker = async (): Promise<void> => {
        for (let key = await queue.take(); key !== undefined; key = await queue.take()) {
          expect(working.has(key)).toBe(false);
          working.add(key);
          lastStart.set(key, ++step);
          await Promise.resolve();
          working.delete(key);
          queue.done(key);
        }
      };
      const workers = [worker(), worker(), worker()];
      for (const [key, pauses] of adds) {
        lastAdd.set(key, ++step);
        queue.add(key);
        for (let pause = 0; pause < pauses; pause++) await Promise.resolve();
      }
      while (queue.depth > 0 || working.size > 0) await Promise.resolve();
      await new Promise((resolve) => setImmediate(resolve));
      queue.close();
      await Promise.all(workers);
      for (const [key, added] of lastAdd) expect(lastStart.get(key)).toBeGreaterThan(added);
    }),
  );
});

test('a delay is between half of and the whole doubled base, never above the limit', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 200 }), fc.double({ min: 0, max: 0.999, noNaN: true }), (failures, dice) => {
      const delay = backoffDelay(failures, { baseMs: 10, maxMs: 1000, random: () => dice });
      const full = Math.min(1000, 10 * 2 ** Math.min(failures - 1, 30));
      expect(delay).toBeGreaterThanOrEqual(full / 2);
      expect(delay).toBeLessThanOrEqual(full);
    }),
  );
});

test('an observer is told how long a key has waited, and how long it was worked on', async () => {
  const told: [string, number][] = [];
  const queue = new WorkQueue({
    observer: {
      taken: (_, waitedMs) => told.push(['waited', waitedMs]),
      done: (workedMs) => told.push(['worked', workedMs]),
    },
  });
  queue.add('a');
  await vi.advanceTimersByTimeAsync(30);
  queue.add('a'); // it waits since it was added first
  await vi.advanceTimersByTimeAsync(20);
  await queue.take();
  await vi.advanceTimersByTimeAsync(7);
  queue.done('a');
  queue.done('never taken');
  expect(told).toEqual([
    ['waited', 50],
    ['worked', 7],
  ]);
});
