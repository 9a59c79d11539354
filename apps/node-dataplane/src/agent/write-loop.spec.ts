import { silentLogger } from '@unbounded/telemetry';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createWriteLoop, type WriteLoop } from './write-loop.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const DEADLINE = 10_000;
/** The first wait is half of the base. */
const backoff = { baseMs: 2000, maxMs: 8000, random: () => 0 };
const never = (): Promise<void> => new Promise(() => undefined);

const open = () => {
  const errors: (string | undefined)[] = [];
  const trigger = vi.fn();
  const loop: WriteLoop = createWriteLoop({
    section: 'example',
    trigger,
    onError: (message) => errors.push(message),
    logger: silentLogger,
    deadlineMs: DEADLINE,
    backoff,
  });
  return { loop, errors, trigger };
};
const settle = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);

test('a write that never ends has failed after its deadline, and its signal is aborted', async () => {
  const { loop, errors } = open();
  let aborted = false;
  loop.submit((signal) => {
    signal.addEventListener('abort', () => (aborted = true));
    return never();
  });
  await vi.advanceTimersByTimeAsync(DEADLINE - 1);
  expect([aborted, errors]).toEqual([false, []]);
  await vi.advanceTimersByTimeAsync(1);
  expect([aborted, errors]).toEqual([true, ['no answer within 10 s']]);
});

test('a write that failed is not repeated: the section is asked for a new report, ever more rarely', async () => {
  const { loop, trigger } = open();
  const write = vi.fn(() => Promise.reject(new Error('forbidden')));
  loop.submit(write);
  await vi.advanceTimersByTimeAsync(999);
  expect(trigger).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(trigger).toHaveBeenCalledTimes(1);
  loop.submit(write);
  await vi.advanceTimersByTimeAsync(1999);
  expect(trigger).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(trigger).toHaveBeenCalledTimes(2);
  expect(write).toHaveBeenCalledTimes(2);
});

test('a write that comes while another waits for its turn is not kept for later', async () => {
  const { loop, trigger } = open();
  loop.submit(() => Promise.reject(new Error('forbidden')));
  await settle();
  const late = vi.fn(async () => undefined);
  loop.submit(late);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(late).not.toHaveBeenCalled();
  expect(trigger).toHaveBeenCalledTimes(1);
});

test('a write that comes while another is under way is asked for again when that has ended', async () => {
  const { loop, trigger } = open();
  const first = Promise.withResolvers<void>();
  const second = vi.fn(async () => undefined);
  loop.submit(() => first.promise);
  loop.submit(second);
  first.resolve();
  await settle();
  expect(second).not.toHaveBeenCalled();
  expect(trigger).toHaveBeenCalledTimes(1);
  loop.submit(second);
  await settle();
  expect(second).toHaveBeenCalledTimes(1);
  expect(trigger).toHaveBeenCalledTimes(1);
});

test('an error is told when it changes, and that there is none any more', async () => {
  const { loop, errors } = open();
  for (const message of ['forbidden', 'forbidden', 'gone', undefined, undefined]) {
    loop.submit(message === undefined ? async () => undefined : () => Promise.reject(new Error(message)));
    await vi.advanceTimersByTimeAsync(10_000);
  }
  expect(errors).toEqual(['forbidden', 'gone', undefined]);
});

test('a section that has nothing to write any more has no error', async () => {
  const { loop, errors } = open();
  loop.submit(() => Promise.reject(new Error('forbidden')));
  await vi.advanceTimersByTimeAsync(10_000);
  loop.submit(undefined);
  expect(errors).toEqual(['forbidden', undefined]);
});

test('stopping gives up what is under way, and nothing follows', async () => {
  const { loop, errors, trigger } = open();
  loop.submit(never);
  await loop.stop();
  const after = vi.fn(async () => undefined);
  loop.submit(after);
  await vi.advanceTimersByTimeAsync(60_000);
  expect([after.mock.calls, errors, trigger.mock.calls]).toEqual([[], [], []]);
});
