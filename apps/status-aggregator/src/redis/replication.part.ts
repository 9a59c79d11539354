import { setTimeout as sleep } from 'node:timers/promises';
import type { HostPart } from '@unbounded/host';
import type { ViewInputs } from '@unbounded/status';
import type { Logger } from '@unbounded/telemetry';
import type { ReportClocks } from '../reports/held-reports.ts';
import { RedisAway, RedisBusy } from './redis-error.ts';
import type { RedisLink } from './redis-link.ts';
import type { RedisMetrics } from './redis-metrics.ts';
import { PAGE_ENTRIES } from './redis.limits.ts';
import { parseReportEntry } from './report-entry.codec.ts';
import type { ReportStore } from './report-store.ts';
import type { ReplicatedReports } from './replicated-reports.ts';
import type { ReplicatedView } from './replicated-view.ts';
import { parseViewEntry } from './view-entry.codec.ts';
import type { ViewStore } from './view-store.ts';

export interface ReplicationOptions {
  readonly link: RedisLink;
  readonly stores: { readonly reports: ReportStore; readonly view: ViewStore };
  readonly reports: ReplicatedReports;
  readonly view: ReplicatedView;
  readonly objects: () => Omit<ViewInputs, 'reports'> | undefined;
  readonly clocks: ReportClocks;
  readonly metrics: RedisMetrics;
  readonly logger: Logger;
  readonly composeEveryMs?: number;
  readonly followEveryMs?: number;
  readonly notRenewedMs?: number;
}

const COMPOSE_EVERY_MS = 3000;
/**
 * How far a replica is behind another. It asks again and again instead of waiting in XREAD: so the answer has a bound whatever others write to the
 * streams, and a server that is frozen is noticed by the time-out of every command.
 */
const FOLLOW_EVERY_MS = 250;
/** Loads are not cheap, and a stream that others write to could ask for one after the other. */
const LOADS = { most: 3, withinMs: 3000 };
const AFTER_FAILURE_MS = 500;
/** Then a replica is ready without Redis: it takes reports, and has no view until Redis is back. */
const READY_WITHOUT_REDIS_MS = 5000;
/** A view that nobody could make for so long stands still. */
const NOT_RENEWED_MS = 15_000;
/** So late may a composition be while there is more to follow. */
const LATE_TURNS = 2;
/** For the lease to be given back. */
const RELEASE_MS = 1000;

/** Where this replica is in the streams. */
interface Place {
  reportsId: string;
  /** Of the last entry of reports: the next one has the next. */
  order: number;
  viewId: string;
  readonly generation: number;
}

const load = async ({ link, stores, reports, view, metrics }: ReplicationOptions): Promise<Place> => {
  const { generation } = link;
  const serverId = await link.serverId();
  // The ends of the streams first: what is written while the rest is read is followed as well, and known then.
  const tip = await stores.view.tip();
  await reports.load();
  await view.load(tip, serverId);
  metrics.loaded();
  return { reportsId: tip.reportsId, order: tip.order, viewId: tip.viewId, generation };
};

/** @returns whether there is more now; undefined: what came does not follow, and everything has to be loaded */
const follow = async ({ stores, reports, view, metrics }: ReplicationOptions, place: Place) => {
  const page = await stores.reports.follow({ reports: place.reportsId, view: place.viewId });
  for (const { id, fields } of page.reports) {
    const entry = fields && parseReportEntry(fields);
    if (entry) {
      // Entries between were trimmed before they were read here, or the count begins anew.
      if (entry.order !== place.order + 1) return undefined;
      await reports.follow(entry, page.nowMs);
      place.order = entry.order;
    } else metrics.skipped('report-entry');
    place.reportsId = id; // what could not be followed now is followed again
  }
  for (const { id, fields } of page.view) {
    const entry = fields && parseViewEntry(fields);
    place.viewId = id;
    if (!entry) metrics.skipped('view-entry');
    else if (!(await view.follow(entry))) return undefined;
  }
  return page.reports.length >= PAGE_ENTRIES || page.view.length >= PAGE_ENTRIES;
};

const pauseUntil =
  (signal: AbortSignal) =>
  (ms: number): Promise<unknown> =>
    sleep(ms, undefined, { signal }).catch(() => {});

/** Whether a load is due, or has to wait. */
const createPace = (elapsed: () => number) => {
  let beganAtMs: readonly number[] = [];
  return {
    began: (): void => void (beganAtMs = [...beganAtMs, elapsed()].slice(-LOADS.most)),
    waitMs: (): number => (beganAtMs.length < LOADS.most ? 0 : Math.max(0, beganAtMs[0]! + LOADS.withinMs - elapsed())),
  };
};

/** Composes the view when that is due, as far as it is this replica's turn. */
const createComposing = (options: ReplicationOptions) => {
  const { reports, view, objects, clocks, logger, composeEveryMs = COMPOSE_EVERY_MS } = options;
  let composedAtMs = Number.NEGATIVE_INFINITY;
  let renewedAtMs = Number.NEGATIVE_INFINITY;
  const sinceMs = (atMs: number): number => clocks.elapsed() - atMs;
  return {
    /** Although there is more to follow. */
    isLate: () => sinceMs(composedAtMs) > LATE_TURNS * composeEveryMs,
    /** When a view was made last, by this replica or another one, or nothing had changed. */
    renewedAtMs: () => renewedAtMs,
    async composeIfDue(isInStep: boolean): Promise<void> {
      if (sinceMs(composedAtMs) < composeEveryMs) return;
      composedAtMs = clocks.elapsed();
      const inputs = objects();
      if (!inputs) return;
      const names = new Set(inputs.nodes.map(({ name }) => name));
      reports.forget((name) => names.has(name));
      if (!isInStep) return;
      try {
        await reports.restore();
        const result = await view.compose({ ...inputs, reports: reports.received() });
        if (result !== 'left-to-others') renewedAtMs = clocks.elapsed();
      } catch (error) {
        if (error instanceof RedisAway) throw error;
        logger.error({ err: error }, 'cannot renew the view; the previous one stands');
      }
    },
  };
};

export interface Replication extends HostPart {
  /** A view was made lately, by this replica or another one, or nothing had changed. */
  readonly isRenewed: boolean;
}

/** Keeps this replica in step with the others, one thing after the other: load, follow, compose. */
export const createReplication = (options: ReplicationOptions): Replication => {
  const { link, view, clocks, logger } = options;
  const { followEveryMs = FOLLOW_EVERY_MS, notRenewedMs = NOT_RENEWED_MS } = options;
  const composing = createComposing(options);
  const stopping = new AbortController();
  let place: Place | undefined;
  const pace = createPace(clocks.elapsed);
  let [startedAtMs, loop]: [number, Promise<void> | undefined] = [0, undefined];
  const pause = pauseUntil(stopping.signal);
  const step = async (): Promise<boolean> => {
    if (place && place.generation !== link.generation) place = undefined;
    if (!place && link.isUp) {
      pace.began();
      place = await load(options);
    }
    const more = place ? await follow(options, place) : false;
    if (more === undefined) {
      place = undefined;
      await pause(pace.waitMs());
      return true;
    }
    if (!more || composing.isLate()) await composing.composeIfDue(place !== undefined);
    return more;
  };
  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      try {
        if (!(await step())) await pause(followEveryMs);
      } catch (error) {
        if (!(error instanceof RedisBusy)) place = undefined;
        if (!(error instanceof RedisAway))
          logger.error({ err: error }, 'cannot share reports and view; it is tried again');
        await pause(AFTER_FAILURE_MS);
      }
    }
  };
  return {
    name: 'replication',
    get isReady() {
      return view.relayed.current() !== undefined || clocks.elapsed() - startedAtMs > READY_WITHOUT_REDIS_MS;
    },
    get isRenewed() {
      return clocks.elapsed() - Math.max(startedAtMs, composing.renewedAtMs()) < notRenewedMs;
    },
    start() {
      startedAtMs = clocks.elapsed();
      link.connect();
      loop = run();
    },
    async stop() {
      stopping.abort();
      const released = (loop ?? Promise.resolve()).then(() => (link.isUp ? view.release() : undefined)).catch(() => {});
      await Promise.race([released, sleep(RELEASE_MS, undefined, { ref: false })]);
      link.close();
    },
  };
};
