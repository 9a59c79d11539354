import { hostname } from 'node:os';

import type { Logger, Metrics } from '@unbounded/telemetry';

import { isNotFound } from './api-error.ts';
import type { ResourceClient } from './client.ts';
import { createEventBudget, type EventAllowance } from './event-allowance.ts';
import { createNamed, eventName } from './event-names.ts';
import type { Event, KubeObject } from './objects.ts';
import { cutTexts, EVENT_BOUNDS } from './text-bounds.ts';

export interface EventRecord {
  /** What the event is about. */
  readonly about: KubeObject;
  readonly type: 'Normal' | 'Warning';
  /** One CamelCase word. */
  readonly reason: string;
  /** What the controller was doing, one CamelCase word. */
  readonly action: string;
  /** A sentence; at most 1,024 characters are kept. */
  readonly note: string;
}

/** Tells operators about things that happen. Best effort: a failed write is logged and never disturbs the work. */
export interface EventRecorder {
  record(event: EventRecord): void;
  /** Resolves when everything recorded so far is written or given up. */
  flush(): Promise<void>;
  /** Events that were never written because there were too many. */
  readonly dropped: number;
}

/** A repeat within this time is counted in the first event's series, as events.k8s.io/v1 intends. */
const SERIES_MS = 6 * 60_000;
const MAX_SERIES = 1000;
/** Events that wait while the API server is slow or away: older ones are of less interest than memory. */
const MAX_WAITING = 100;

interface Series {
  readonly name: string;
  readonly namespace: string;
  count: number;
  /** By the clock that only goes forward. */
  lastMs: number;
}

export interface EventRecorderOptions {
  readonly events: ResourceClient<Event>;
  /** For example `unbounded/cidr-allocator`. */
  readonly controller: string;
  readonly logger: Logger;
  readonly metrics?: Metrics;
  /** Not set: as many as there are. */
  readonly allowance?: EventAllowance;
  /** Wall clock, milliseconds: what events show. */
  readonly now?: () => number;
  /** A clock that only goes forward, milliseconds. */
  readonly elapsed?: () => number;
}

const microTime = (ms: number): string => new Date(ms).toISOString().replace('Z', '000Z');

export const createEventRecorder = ({
  events,
  controller,
  logger,
  metrics,
  allowance,
  now = Date.now,
  elapsed = () => performance.now(),
}: EventRecorderOptions): EventRecorder => {
  const instance = `${controller.replaceAll('/', '-')}-${hostname()}`;
  const known = new Map<string, Series>();

  const first = async (key: string, { about, type, reason, action, note }: EventRecord, at: number): Promise<void> => {
    const namespace = about.metadata.namespace ?? 'default';
    const texts = cutTexts({ reason, action, note, reportingInstance: instance }, EVENT_BOUNDS);
    const created = {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: '', namespace },
      eventTime: microTime(at),
      reportingController: controller,
      ...texts,
      type,
      regarding: {
        ...(about.apiVersion === undefined ? {} : { apiVersion: about.apiVersion }),
        ...(about.kind === undefined ? {} : { kind: about.kind }),
        name: about.metadata.name,
        ...(about.metadata.namespace === undefined ? {} : { namespace: about.metadata.namespace }),
        // kubectl describe finds events of a Node by its name as uid, the kubelet's habit; others by their real uid.
        ...(about.metadata.uid === undefined
          ? {}
          : { uid: about.kind === 'Node' ? about.metadata.name : about.metadata.uid }),
      },
    };
    const name = await createNamed(events, created, () => eventName(about.metadata.name, at, allowance));
    known.set(key, { name, namespace, count: 1, lastMs: elapsed() });
    if (known.size > MAX_SERIES) known.delete(known.keys().next().value!);
  };

  const write = async (event: EventRecord): Promise<void> => {
    const key = [
      event.about.kind,
      event.about.metadata.uid ?? event.about.metadata.name,
      event.type,
      event.reason,
      event.note,
    ].join('\0');
    const at = now();
    const series = known.get(key);
    if (!series || elapsed() - series.lastMs > SERIES_MS) return first(key, event, at);
    series.count++;
    series.lastMs = elapsed();
    const patch = { series: { count: series.count, lastObservedTime: microTime(at) } };
    try {
      await events.mergePatch(series.name, patch, { namespace: series.namespace });
    } catch (error) {
      if (!isNotFound(error)) throw error;
      await first(key, event, at); // the old one has expired
    }
  };

  const drops = metrics?.counter({
    name: 'unbounded_events_dropped_total',
    help: 'Events dropped because too many waited for the API server, or came faster than the program may send them.',
  });
  const queue = boundedQueue(write, logger, () => drops?.inc());
  return allowance ? rationed(queue, createEventBudget(allowance, elapsed), () => drops?.inc()) : queue;
};

/** Drops what is beyond the allowance; repeats count too, as each is a request. */
const rationed = (queue: EventRecorder, take: () => boolean, onDrop: () => void): EventRecorder => {
  let dropped = 0;
  return {
    record: (event) => {
      if (take()) return queue.record(event);
      dropped++;
      onDrop();
    },
    flush: () => queue.flush(),
    get dropped() {
      return dropped + queue.dropped;
    },
  };
};

/** Writes one event after the other; at most so many wait. */
const boundedQueue = (
  write: (event: EventRecord) => Promise<void>,
  logger: Logger,
  onDrop: () => void,
): EventRecorder => {
  const waiting: EventRecord[] = [];
  let writing: Promise<void> | undefined;
  let dropped = 0;
  const writeAll = async (): Promise<void> => {
    for (let event = waiting.shift(); event; event = waiting.shift()) {
      const { reason, about } = event;
      await write(event).catch((error: unknown) =>
        logger.warn({ err: error, reason, about: about.metadata.name }, 'event not written'),
      );
    }
    writing = undefined;
  };
  const drop = (): void => {
    waiting.shift();
    onDrop();
    if (++dropped % MAX_WAITING === 1)
      logger.warn({ dropped, waiting: MAX_WAITING }, 'too many events wait: the oldest are dropped');
  };
  return {
    record: (event) => {
      if (waiting.length >= MAX_WAITING) drop();
      waiting.push(event);
      writing ??= writeAll();
    },
    flush: async () => {
      await writing;
    },
    get dropped() {
      return dropped;
    },
  };
};
