import { ApiError, type EventRecord, NoAnswerError, TransportError } from '@unbounded/kube';
import { createMetrics, silentLogger } from '@unbounded/telemetry';
import { expect, test } from 'vitest';

import { createObjectWrites } from './object-writes.ts';

const object = (name: string) => ({ apiVersion: 'v1', kind: 'Thing', metadata: { name, uid: `uid-${name}` } });
const refusal = new ApiError('PATCH /things/bad', 422, { reason: 'Invalid', message: 'too long' });

const setUp = () => {
  const clock = { ms: 0 };
  const events: EventRecord[] = [];
  const metrics = createMetrics();
  const writes = createObjectWrites({
    recorder: { record: (event) => void events.push(event), flush: async () => {}, dropped: 0 },
    logger: silentLogger,
    metrics,
    now: () => clock.ms,
    backoff: { baseMs: 100, maxMs: 1000, random: () => 0.999_999 },
  });
  return { clock, events, metrics, writes };
};

test('a refused object rests longer and longer, is told once, and is tried again until it is taken', async () => {
  const { clock, events, metrics, writes } = setUp();
  const tried: string[] = [];
  let refuse = true;
  const round = async () => {
    await writes.attempt(object('bad'), 'the status', async () => {
      tried.push(`bad ${clock.ms}`);
      if (refuse) throw refusal;
    });
    await writes.attempt(object('good'), 'the status', async () => void tried.push(`good ${clock.ms}`));
    return writes.verdict();
  };
  await expect(round()).resolves.toMatchObject({ kind: 'again' });
  clock.ms = 50;
  await round();
  expect(tried).toEqual(['bad 0', 'good 0', 'good 50']);
  clock.ms = 100;
  const { afterMs } = (await round()) as { afterMs: number };
  expect(afterMs).toBeGreaterThan(150);
  expect(events).toMatchObject([{ reason: 'WriteRefused', about: { metadata: { name: 'bad' } } }]);
  expect(events[0]!.note).toContain('too long');
  expect(await metrics.render()).toContain('unbounded_net_controller_refused_writes_total{kind="Thing"} 2');
  refuse = false;
  clock.ms = 301;
  expect(await round()).toEqual({ kind: 'done' });
});

test('a conflict is retried soon, however long the rest of the round takes, and is no news', async () => {
  const { clock, events, writes } = setUp();
  const conflict = new ApiError('PUT', 409, { reason: 'Conflict' });
  await writes.attempt(object('a'), 'the slice', () => Promise.reject(conflict));
  clock.ms = 5000;
  expect(writes.verdict(10_000)).toEqual({ kind: 'again', afterMs: 1 });
  expect(events).toEqual([]);
});

test('conflicts without end are retried more and more slowly: a cache that lags must not be asked 20 times a second', async () => {
  const { clock, events, writes } = setUp();
  const rests: number[] = [];
  for (let count = 0; count < 12; count++) {
    await writes.attempt(object('a'), 'the slice', () =>
      Promise.reject(new ApiError('POST', 409, { reason: 'AlreadyExists' })),
    );
    const verdict = writes.verdict();
    if (verdict.kind !== 'again') throw new Error('it does not come back');
    rests.push(verdict.afterMs);
    clock.ms += verdict.afterMs;
  }
  expect(rests[0]).toBeLessThanOrEqual(50);
  expect(rests.at(-1)).toBeGreaterThanOrEqual(2500);
  expect(rests.at(-1)).toBeLessThanOrEqual(5000);
  expect(events).toEqual([]);
});

test('what concerns other writes as well is thrown, and is no refusal of the object', async () => {
  const { events, writes } = setUp();
  const conflict = new ApiError('PUT', 409, { reason: 'Conflict' });
  const attempt = (error: Error) =>
    writes.attempt(
      object('a'),
      'the slice',
      () => Promise.reject(error),
      (reason) => reason === conflict,
    );
  await expect(attempt(conflict)).rejects.toThrow(conflict);
  expect(writes.verdict()).toEqual({ kind: 'done' });
  await attempt(refusal);
  expect(events).toHaveLength(1);
});

test('what is not wanted any more is forgotten', async () => {
  const { writes } = setUp();
  await writes.attempt(object('a'), 'the status', () => Promise.reject(refusal));
  expect(writes.verdict().kind).toBe('again');
  expect(writes.verdict()).toEqual({ kind: 'done' });
});

test('a broken connection is no fault of the object and ends the round', async () => {
  const { writes } = setUp();
  const broken = new TransportError('the answer broke off');
  await expect(writes.attempt(object('a'), 'the status', () => Promise.reject(broken))).rejects.toBe(broken);
});

test('a write that is not answered is the fault of its object, which rests: the round goes on', async () => {
  const { events, writes } = setUp();
  const late = new NoAnswerError('no answer for 30000 ms');
  await expect(writes.attempt(object('a'), 'the status', () => Promise.reject(late))).resolves.toBeUndefined();
  expect(events).toHaveLength(1);
  let isTried = false;
  await writes.attempt(object('a'), 'the status', async () => void (isTried = true));
  expect(isTried).toBe(false);
  expect(writes.verdict().kind).toBe('again');
});

test('an object that rests is told without an attempt, and goes on resting', async () => {
  const { clock, writes } = setUp();
  expect(writes.isResting(object('a'), 'the status')).toBe(false);
  await writes.attempt(object('a'), 'the status', () => Promise.reject(refusal));
  for (let round = 0; round < 3; round++) {
    expect(writes.isResting(object('a'), 'the status')).toBe(true);
    expect(writes.isResting(object('b'), 'the status')).toBe(false);
    expect(writes.verdict().kind).toBe('again');
  }
  clock.ms += 60_000;
  expect(writes.isResting(object('a'), 'the status')).toBe(false);
});

test('an object is refused from an attempt that failed until one that does not; a conflict is no refusal', async () => {
  const { clock, writes } = setUp();
  const attempt = async (result: Promise<void>): Promise<boolean> => {
    clock.ms += 60_000;
    await writes.attempt(object('a'), 'the status', () => result);
    return writes.isRefused(object('a'), 'the status');
  };
  expect(await attempt(Promise.reject(new ApiError('PUT', 409, { reason: 'Conflict' })))).toBe(false);
  expect(await attempt(Promise.reject(refusal))).toBe(true);
  expect(await attempt(Promise.resolve())).toBe(false);
});
