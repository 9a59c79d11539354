import { hostname } from 'node:os';

import { type Logger } from '@unbounded/telemetry';

import { isNotFound } from './api-error.ts';
import { type ResourceClient } from './client.ts';
import { type Event, type KubeObject } from './objects.ts';

export interface EventRecord {
  /** What the event is about. */
  readonly about: KubeObject;
  readonly type: 'Normal' | 'Warning';
  /** One CamelCase word. */
  readonly reason: string;
  /** What the controller was doing, one CamelCase word. */
  readonly action: string;
  /** A sentence; at most 1 kB is kept. */
  readonly note: string;
}

/** Tells operators about things that happen. Best effort: a failed write is logged and never disturbs the work. */
export interface EventRecorder {
  record(event: EventRecord): void;
  /** Resolves when everything recorded so far is written or given up. */
  flush(): Promise<void>;
}

/** A repeat within this time is counted in the first event's series, as events.k8s.io/v1 intends. */
const SERIES_MS = 6 * 60_000;
const MAX_SERIES = 1000;
const MAX_NOTE = 1000;

interface Series {
  readonly name: string;
  readonly namespace: string;
  count: number;
  lastMs: number;
}

export interface EventRecorderOptions {
  readonly events: ResourceClient<Event>;
  /** For example `unbounded/cidr-allocator`. */
  readonly controller: string;
  readonly logger: Logger;
  readonly now?: () => number;
}

const microTime = (ms: number): string => new Date(ms).toISOString().replace('Z', '000Z');

export const createEventRecorder = ({
  events,
  controller,
  logger,
  now = Date.now,
}: EventRecorderOptions): EventRecorder => {
  const instance = `${controller.replaceAll('/', '-')}-${hostname()}`;
  const known = new Map<string, Series>();
  let writing: Promise<unknown> = Promise.resolve();

  const first = async (key: string, { about, type, reason, action, note }: EventRecord, at: number): Promise<void> => {
    const namespace = about.metadata.namespace ?? 'default';
    const name = `${about.metadata.name.slice(0, 200)}.${at.toString(16)}${Math.floor(Math.random() * 0xff_ffff).toString(16)}`;
    await events.create({
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name, namespace },
      eventTime: microTime(at),
      reportingController: controller,
      reportingInstance: instance.slice(0, 128),
      action,
      reason,
      type,
      note: note.slice(0, MAX_NOTE),
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
    });
    known.set(key, { name, namespace, count: 1, lastMs: at });
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
    if (!series || at - series.lastMs > SERIES_MS) return first(key, event, at);
    series.count++;
    series.lastMs = at;
    const patch = { series: { count: series.count, lastObservedTime: microTime(at) } };
    try {
      await events.mergePatch(series.name, patch, { namespace: series.namespace });
    } catch (error) {
      if (!isNotFound(error)) throw error;
      await first(key, event, at); // the old one has expired
    }
  };

  return {
    record: (event) => {
      writing = writing
        .then(() => write(event))
        .catch((error: unknown) =>
          logger.warn({ err: error, reason: event.reason, about: event.about.metadata.name }, 'event not written'),
        );
    },
    flush: async () => {
      await writing;
    },
  };
};
