import { createLogger, createMetrics, silentLogger } from '@unbounded/telemetry';
import { expect, test } from 'vitest';

import { ApiError } from './api-error.ts';
import type { ResourceClient } from './client.ts';
import { createEventRecorder, type EventRecord } from './event-recorder.ts';
import type { Event } from './objects.ts';

const event = (note: string): EventRecord => ({
  about: { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } },
  type: 'Warning',
  reason: 'Test',
  action: 'Test',
  note,
});
const WAITING = 100;

test('while the API server hangs a bounded number of events waits: the newest', async () => {
  const hung = Promise.withResolvers<void>();
  const written: string[] = [];
  const create = async ({ note }: Event): Promise<void> => {
    if (written.length === 0) await hung.promise;
    written.push(note ?? '');
  };
  const log: string[] = [];
  const metrics = createMetrics();
  const recorder = createEventRecorder({
    metrics,
    events: { create } as unknown as ResourceClient<Event>,
    controller: 'unbounded/test',
    logger: createLogger({ name: 'test', destination: { write: (line) => void log.push(line) } }),
  });
  for (let index = 0; index < 1000; index++) recorder.record(event(`${index}`));
  expect(recorder.dropped).toBe(1000 - 1 - WAITING); // one was under way
  expect(await metrics.render()).toContain(`unbounded_events_dropped_total ${recorder.dropped}`);
  hung.resolve();
  await recorder.flush();
  expect(written).toEqual(['0', ...Array.from({ length: WAITING }, (_, index) => `${900 + index}`)]);
  expect(log.length).toBeLessThan(20);
});

test.each([-3_600_000, 3_600_000])(
  'a repeat is counted in its series also when the wall clock is set by %i ms',
  async (stepMs) => {
    let [wallMs, elapsedMs] = [Date.parse('2026-01-01T00:00:00Z'), 0];
    const calls: string[] = [];
    const recorder = createEventRecorder({
      events: {
        create: async () => void calls.push('create'),
        mergePatch: async () => void calls.push('patch'),
      } as unknown as ResourceClient<Event>,
      controller: 'unbounded/test',
      logger: silentLogger,
      now: () => wallMs,
      elapsed: () => elapsedMs,
    });
    const record = async (): Promise<void> => {
      recorder.record(event('same'));
      await recorder.flush();
    };
    await record();
    [wallMs, elapsedMs] = [wallMs + stepMs, 60_000];
    await record();
    elapsedMs += 7 * 60_000;
    await record();
    expect(calls).toEqual(['create', 'patch', 'create']);
  },
);

test('a program with an allowance sends so many events at once and then one after the other, whatever happens', async () => {
  let elapsedMs = 0;
  const written: string[] = [];
  const recorder = createEventRecorder({
    events: { create: async ({ note }: Event) => void written.push(note ?? '') } as unknown as ResourceClient<Event>,
    controller: 'unbounded/test',
    logger: silentLogger,
    allowance: { most: 25, everyMs: 60_000 },
    elapsed: () => elapsedMs,
  });
  const burst = async (): Promise<number> => {
    const before = written.length;
    for (let index = 0; index < 100; index++) recorder.record(event(`${elapsedMs} ${index}`));
    await recorder.flush();
    return written.length - before;
  };
  expect(await burst()).toBe(25);
  elapsedMs = 59_999;
  expect(await burst()).toBe(0);
  elapsedMs = 180_000;
  expect(await burst()).toBe(3);
  elapsedMs = 24 * 3_600_000;
  expect(await burst()).toBe(25);
  expect(recorder.dropped).toBe(400 - 25 - 3 - 25);
});

test('the texts of an event are cut to what the API server and the chart’s policies take', async () => {
  const written: Event[] = [];
  const recorder = createEventRecorder({
    events: { create: async (created: Event) => void written.push(created) } as unknown as ResourceClient<Event>,
    controller: `unbounded/${'c'.repeat(300)}`,
    logger: silentLogger,
  });
  const long = 'x'.repeat(60_000);
  recorder.record({ ...event(long), reason: long, action: long });
  await recorder.flush();
  const { reason, action, note, reportingInstance } = written[0] as unknown as Record<string, string>;
  expect([reason, action, reportingInstance, note].map((text) => text?.length)).toEqual([128, 128, 128, 1024]);
});

test('events of a program with an allowance have one of so many names, and another when one is taken', async () => {
  const taken = new Set<string>();
  let conflicts = 0;
  const create = async ({ metadata: { name } }: Event): Promise<void> => {
    if (taken.has(name) || conflicts < 3) {
      conflicts++;
      throw new ApiError('POST', 409, { reason: 'AlreadyExists' });
    }
    taken.add(name);
  };
  const recorder = createEventRecorder({
    events: { create } as unknown as ResourceClient<Event>,
    controller: 'unbounded/test',
    logger: silentLogger,
    allowance: { most: 1000, everyMs: 60_000 },
  });
  for (let index = 0; index < 50; index++) recorder.record(event(`${index}`));
  await recorder.flush();
  expect(taken.size).toBe(50);
  for (const name of taken) expect(name).toMatch(/^n\.[0-9a-f]{3}$/);
});
