import { setImmediate } from 'node:timers/promises';
import { createMetrics, silentLogger } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import { expect, test } from 'vitest';
import type { RedisLink } from './redis-link.ts';
import { RedisBusy } from './redis-error.ts';
import { redisMetrics } from './redis-metrics.ts';
import { PAGE_ENTRIES } from './redis.limits.ts';
import { inputsOf } from './replica.testdata.ts';
import { createReplication, type ReplicationOptions } from './replication.part.ts';
import type { ReplicatedReports } from './replicated-reports.ts';
import type { ReportStore } from './report-store.ts';
import type { ViewStore } from './view-store.ts';

/** The order of things, with a Redis that answers as the test says. */

type Follow = ReportStore['follow'];
const PAGE = { nowMs: 0, reports: [], view: [] };

/** @param follow what the streams have next; the first look is 1 */
const bed = (follow: (look: number) => Awaited<ReturnType<Follow>>, reportsFollow = (): void => undefined) => {
  const seen = { looks: 0, loads: 0, compositions: 0 };
  const tip = { reportsId: '0-0', order: 0, viewId: '0-0', snapshot: undefined, snapshotServerId: '' };
  const reports = {
    load: async () => void seen.loads++,
    follow: async () => reportsFollow(),
    restore: async () => undefined,
    forget: () => undefined,
    received: () => new Map(),
  };
  const view = {
    relayed: { current: () => undefined },
    load: async () => undefined,
    follow: async () => true,
    compose: async () => (seen.compositions++, 'same' as const),
    release: async () => undefined,
  };
  const link = {
    isUp: true,
    generation: 1,
    serverId: async () => '',
    connect: () => undefined,
    close: () => undefined,
  };
  const part = createReplication({
    link: link as unknown as RedisLink,
    stores: {
      reports: {
        follow: async () => {
          await setImmediate(); // as long as an answer takes
          return follow(++seen.looks);
        },
      } as unknown as ReportStore,
      view: { tip: async () => tip } as unknown as ViewStore,
    },
    reports: reports as unknown as ReplicatedReports,
    view: view as unknown as ReplicationOptions['view'],
    objects: () => inputsOf(),
    clocks: { elapsed: () => performance.now(), now: () => new Date() },
    metrics: redisMetrics(createMetrics()),
    logger: silentLogger,
    ...{ composeEveryMs: 20, followEveryMs: 1 },
  });
  return { part, seen };
};

const entryOf = (order: number) => {
  const texts = { n: 'n1', e: '"e"', r: `${order}`, t: '1', q: `${order}`, b: '', d: '' };
  const fields = new Map(Object.entries(texts).map(([name, value]) => [name, Buffer.from(value)]));
  return { id: `${order}-0`, fields };
};

test('the view is composed although the streams always have more', async () => {
  const full = Array.from({ length: PAGE_ENTRIES }, (_, index) => ({ id: `${index + 1}-0`, fields: undefined }));
  const { part, seen } = bed(() => ({ ...PAGE, view: full }));
  await part.start();
  await until('it is composed again and again', () => seen.compositions > 2);
  await part.stop?.();
  expect(seen.loads).toBe(1);
});

test('an entry that could not be read because much is asked of Redis is followed again, and nothing is loaded anew', async () => {
  const followed: number[] = [];
  const { part, seen } = bed(
    () => ({ ...PAGE, reports: followed.length < 2 ? [entryOf(1)] : [] }),
    () => {
      followed.push(seen.looks);
      if (followed.length === 1) throw new RedisBusy('Redis is too slow');
    },
  );
  await part.start();
  await until('it goes on', () => seen.looks > 5 && seen.compositions > 0);
  await part.stop?.();
  expect([followed, seen.loads]).toEqual([[1, 2], 1]);
});
