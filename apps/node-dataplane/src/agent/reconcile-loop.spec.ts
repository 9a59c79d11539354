import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type ReconcileLoop, startReconcileLoop } from './reconcile-loop.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const QUIET = 200;
const RETRY = 1000;

const start = (pass: () => Promise<number>) => {
  const errors: string[] = [];
  const loop: ReconcileLoop = startReconcileLoop({
    pass,
    quietMs: QUIET,
    retryMs: RETRY,
    onError: ({ message }) => errors.push(message),
  });
  return { loop, errors };
};

test('a pass at once, and then when the last one said', async () => {
  const pass = vi.fn(async () => 5000);
  start(pass);
  await vi.advanceTimersByTimeAsync(0);
  expect(pass).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(4999);
  expect(pass).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(pass).toHaveBeenCalledTimes(2);
});

test('many demands within the quiet time are one pass', async () => {
  const pass = vi.fn(async () => 5000);
  const { loop } = start(pass);
  await vi.advanceTimersByTimeAsync(0);
  for (let i = 0; i < 10; i++) {
    loop.trigger();
    await vi.advanceTimersByTimeAsync(QUIET / 20);
  }
  await vi.advanceTimersByTimeAsync(QUIET);
  expect(pass).toHaveBeenCalledTimes(2);
});

test('a demand during a pass is met by another one, and never two run at once', async () => {
  const ends: (() => void)[] = [];
  const pass = vi.fn(() => new Promise<number>((resolve) => ends.push(() => resolve(5000))));
  const { loop } = start(pass);
  await vi.advanceTimersByTimeAsync(0);
  loop.trigger();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(pass).toHaveBeenCalledTimes(1);
  ends[0]!();
  await vi.advanceTimersByTimeAsync(QUIET);
  expect(pass).toHaveBeenCalledTimes(2);
});

test('a pass that throws is told and tried again after its own time', async () => {
  const pass = vi.fn(async (): Promise<number> => {
    throw new Error('no kernel');
  });
  const { errors } = start(pass);
  await vi.advanceTimersByTimeAsync(RETRY);
  expect(pass).toHaveBeenCalledTimes(2);
  expect(errors).toEqual(['no kernel', 'no kernel']);
});

test('stopping waits for the pass that runs, and none follows', async () => {
  let end: (() => void) | undefined;
  const pass = vi.fn(() => new Promise<number>((resolve) => (end = () => resolve(0))));
  const { loop } = start(pass);
  await vi.advanceTimersByTimeAsync(0);
  let stopped = false;
  const stopping = loop.stop().then(() => (stopped = true));
  loop.trigger();
  await vi.advanceTimersByTimeAsync(1000);
  expect(stopped).toBe(false);
  end!();
  await stopping;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(pass).toHaveBeenCalledTimes(1);
});

test.each([
  ['back', -3_600_000],
  ['forth', 3_600_000],
])('a wall clock that is set %s by an hour changes nothing about when passes run', async (_, stepMs) => {
  const pass = vi.fn(async () => 5000);
  const { loop } = start(pass);
  await vi.advanceTimersByTimeAsync(0);
  vi.setSystemTime(Date.now() + stepMs); // moves Date alone: timers and performance.now() go on as they were
  loop.trigger();
  await vi.advanceTimersByTimeAsync(QUIET - 1);
  expect(pass).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(pass).toHaveBeenCalledTimes(2);
  await vi.advanceTimersByTimeAsync(5000);
  expect(pass).toHaveBeenCalledTimes(3);
});
