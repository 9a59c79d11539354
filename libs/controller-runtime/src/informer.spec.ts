import timers from 'node:timers/promises';
import {
  ApiError,
  IdleError,
  type KubeObject,
  type ResourceClient,
  TransportError,
  type WatchEvent,
} from '@unbounded/kube';
import { createLogger, silentLogger } from '@unbounded/telemetry';
import { replaceInBuiltin } from '@unbounded/testing/builtin';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createInformer } from './informer.ts';

/** Vitest's fake timers do not reach this module. */
const fakeDelay = (<T>(ms: number, value: T) =>
  new Promise<T>((resolve) => setTimeout(resolve, ms, value))) as typeof timers.setTimeout;

let stop: AbortController;
let delays: Disposable;
beforeEach(() => {
  vi.useFakeTimers();
  delays = replaceInBuiltin(timers, { setTimeout: fakeDelay });
  stop = new AbortController();
});
afterEach(() => {
  stop.abort();
  delays[Symbol.dispose]();
  vi.useRealTimers();
});

/** What each watch ends with; after the last one it goes on for ever. */
const follow = (ends: readonly Error[], { listEnds = [] as readonly Error[], logger = silentLogger } = {}) => {
  const lists: (string | undefined)[] = [];
  const watches: { readonly from: string; readonly atMs: number }[] = [];
  const client = {
    resource: { plural: 'things' },
    list: async ({ resourceVersion }: { readonly resourceVersion?: string }) => {
      lists.push(resourceVersion);
      const failure = listEnds[lists.length - 1];
      if (failure) throw failure;
      return { items: [], resourceVersion: `${100 * lists.length}` };
    },
    // oxlint-disable-next-line require-yield -- a watch that tells nothing
    async *watch({
      resourceVersion: from,
      onOpen,
    }: {
      readonly resourceVersion: string;
      readonly onOpen: () => void;
    }): AsyncGenerator<WatchEvent<KubeObject>> {
      watches.push({ from, atMs: performance.now() });
      const failure = ends[watches.length - 1];
      if (failure !== away) onOpen();
      if (!failure) return await new Promise<never>(() => undefined);
      if (failure === idle) await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
      throw failure;
    },
  } as unknown as ResourceClient<KubeObject>;
  const informer = createInformer({ client, logger });
  void informer.run(stop.signal);
  return { lists, watches, informer };
};
const IDLE_MS = 150_000;
const idle = new IdleError('nothing more');
const away = new TransportError('connect ECONNREFUSED');
const expired = new ApiError('watch things', 410, { reason: 'Expired' });

test('the first listing is served from the server’s memory', async () => {
  const { lists } = follow([]);
  await vi.advanceTimersByTimeAsync(0);
  expect(lists).toEqual(['0']);
});

test('while the server is away a watch is tried at least every two seconds, from where it was, without a listing', async () => {
  const { lists, watches } = follow(Array.from({ length: 30 }, () => away));
  await vi.advanceTimersByTimeAsync(120_000);
  expect(lists).toHaveLength(1);
  expect(new Set(watches.map(({ from }) => from))).toEqual(new Set(['100']));
  const gaps = watches.slice(1).map(({ atMs }, index) => atMs - watches[index]!.atMs);
  expect(Math.max(...gaps)).toBeLessThanOrEqual(2000);
  expect(watches).toHaveLength(31);
});

test('it knows since when the server is away, until a watch of it is open again, whether or not that has anything to report', async () => {
  const { watches, informer } = follow(Array.from({ length: 10 }, () => away));
  await vi.advanceTimersByTimeAsync(0);
  const lostAtMs = watches[0]!.atMs;
  expect(informer.lostAtMs).toBe(lostAtMs);
  await vi.advanceTimersByTimeAsync(5000);
  expect([watches.length, informer.lostAtMs]).toEqual([expect.closeTo(6, -1), lostAtMs]);
  await vi.advanceTimersByTimeAsync(60_000);
  expect([watches.length, informer.lostAtMs]).toEqual([11, undefined]);
});

test('versions that have expired, and watches that end as they should, are no loss of the server', async () => {
  const { watches, informer } = follow([expired, idle]);
  await vi.advanceTimersByTimeAsync(0);
  expect(informer.lostAtMs).toBeUndefined();
  await vi.advanceTimersByTimeAsync(3000 + IDLE_MS);
  expect([watches.length, informer.lostAtMs]).toEqual([3, undefined]);
});

test('a watch of a resource without objects, which nothing is sent to, is renewed at once and without a warning', async () => {
  const said: string[] = [];
  const logger = createLogger({ name: 'test', destination: { write: (line) => void said.push(line) } });
  const { lists, watches } = follow([idle, idle], { logger });
  await vi.advanceTimersByTimeAsync(2 * IDLE_MS);
  expect(lists).toEqual(['0']);
  expect(watches.map(({ from }) => from)).toEqual(['100', '100', '100']);
  expect(watches.map(({ atMs }) => atMs - watches[0]!.atMs)).toEqual([0, IDLE_MS, 2 * IDLE_MS]);
  expect(said).toEqual([]);
});

test('a server that refuses is asked ever more rarely', async () => {
  const busy = new ApiError('watch things', 429, { reason: 'TooManyRequests' });
  const { watches } = follow(Array.from({ length: 100 }, () => busy));
  await vi.advanceTimersByTimeAsync(120_000);
  const gaps = watches.slice(1).map(({ atMs }, index) => atMs - watches[index]!.atMs);
  expect(gaps.at(-1)).toBeGreaterThan(7000);
});

test('after an expired version the newest is listed, at a moment of each client’s own', async () => {
  const started: number[] = [];
  for (let client = 0; client < 200; client++) {
    const { lists, watches } = follow([expired]);
    await vi.advanceTimersByTimeAsync(0);
    const beganMs = watches[0]!.atMs;
    await vi.advanceTimersByTimeAsync(3000);
    expect(lists).toEqual(['0', undefined]);
    started.push(watches[1]!.atMs - beganMs);
  }
  expect(Math.max(...started) - Math.min(...started)).toBeGreaterThan(1500);
  expect(started.filter((ms) => ms < 300).length).toBeLessThan(60); // not all at once
});

test('a memory of the server that is behind what is known is given up for its store', async () => {
  const behind = new ApiError('GET things', 504, { reason: 'Timeout', message: 'Too large resource version' });
  const forbidden = new ApiError('watch things', 403, { reason: 'Forbidden' });
  const { lists } = follow([forbidden], { listEnds: [undefined as unknown as Error, behind] });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(lists).toEqual(['0', '100', undefined]);
});
