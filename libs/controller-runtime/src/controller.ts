import { isConflict, type KubeObject } from '@unbounded/kube';
import { type Logger, type Metrics, traced } from '@unbounded/telemetry';

import type { BackoffOptions } from './backoff.ts';
import type { Informer } from './informer.ts';
import { queueMetrics, reconcileMetrics, type ReconcileResult } from './runtime-metrics.ts';
import type { Verdict } from './verdict.ts';
import { WorkQueue } from './work-queue.ts';

/** Brings one key to its desired state. It gets a key, never an event: the state is read from the caches. */
export type Reconcile = (key: string, signal: AbortSignal) => Promise<Verdict>;

/** Where keys come from. */
export interface Source {
  /** Calls `enqueue` for changes, from now on. */
  connect(enqueue: (key: string) => void): void;
  /** Every key that the source knows: worked on when leadership begins, and at every resync. */
  keys(): Iterable<string>;
}

export interface WatchesOptions<T> {
  /** Keys that an object concerns; its own name when not set. */
  readonly keysOf?: (object: T) => Iterable<string>;
  /** Updates that leave this text as it was concern nobody. */
  readonly fingerprint?: (object: T) => string;
}

/** Keys of a cache's objects; for an update both the old and the new object's. */
export const watches = <T extends KubeObject>(
  informer: Informer<T>,
  { keysOf = ({ metadata }) => [metadata.name], fingerprint }: WatchesOptions<T> = {},
): Source => ({
  connect: (enqueue) =>
    informer.on((change) => {
      if (change.type === 'updated') {
        if (fingerprint && fingerprint(change.previous) === fingerprint(change.object)) return;
        for (const key of keysOf(change.previous)) enqueue(key);
      }
      for (const key of keysOf(change.object)) enqueue(key);
    }),
  keys: function* () {
    for (const object of informer.list()) yield* keysOf(object);
  },
});

export interface ControllerOptions {
  readonly name: string;
  readonly sources: readonly Source[];
  readonly reconcile: Reconcile;
  /** Keys worked on at the same time; one key never is. */
  readonly concurrency?: number;
  /** A change waits this long, so that a burst of changes is one reconcile. */
  readonly gatherMs?: number;
  /** Every key is looked at again this often, so that drift and lost writes are repaired. */
  readonly resyncMs?: number;
  readonly backoff?: BackoffOptions;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

export interface Controller {
  readonly name: string;
  /** Works until the signal aborts; resolves when the last reconcile has ended. */
  run(signal: AbortSignal): Promise<void>;
}

const DEFAULT_RESYNC_MS = 5 * 60_000;

const resultOf: Readonly<Record<Verdict['kind'], ReconcileResult>> = {
  done: 'success',
  again: 'requeue_after',
  reject: 'rejected',
};

/** Everything that failed, of writes in parallel too, was on top of a change that had not been seen yet. */
const isOnlyConflicts = (error: unknown): boolean =>
  error instanceof AggregateError ? error.errors.every(isOnlyConflicts) : isConflict(error);

const reasonOf = (error: unknown): string =>
  error instanceof AggregateError ? error.errors.map(reasonOf).join('; ') : (error as Error).message;

const settle = (queue: WorkQueue, key: string, verdict: Verdict): void => {
  queue.forget(key);
  if (verdict.kind === 'again') queue.addAfter(key, verdict.afterMs);
};

export const createController = (options: ControllerOptions): Controller => {
  const {
    name,
    sources,
    reconcile,
    concurrency = 1,
    resyncMs = DEFAULT_RESYNC_MS,
    gatherMs = 0,
    logger,
    metrics,
  } = options;
  const observe = reconcileMetrics(metrics, name);
  const observer = queueMetrics(metrics, name);
  let queue: WorkQueue | undefined; // exists while we lead
  for (const source of sources) source.connect((key) => queue?.addAfter(key, gatherMs));

  const workOn = async (current: WorkQueue, key: string, signal: AbortSignal): Promise<void> => {
    const startedMs = performance.now();
    let result: ReconcileResult = 'error';
    try {
      const verdict = await traced(`reconcile ${name}`, { key }, () => reconcile(key, signal));
      result = resultOf[verdict.kind];
      if (verdict.kind === 'reject') logger.warn({ controller: name, key, reason: verdict.reason }, 'rejected');
      settle(current, key, verdict);
    } catch (error) {
      if (!signal.aborted) {
        // Everyday with two writers: the retry sees what the other wrote.
        if (isOnlyConflicts(error))
          logger.debug({ controller: name, key, reason: reasonOf(error) }, 'conflict, retried');
        else logger.warn({ controller: name, key, err: error }, 'reconcile failed');
        current.retry(key);
      }
    } finally {
      observe(result, performance.now() - startedMs);
      current.done(key);
    }
  };

  const worker = async (current: WorkQueue, signal: AbortSignal): Promise<void> => {
    for (let key = await current.take(); key !== undefined && !signal.aborted; key = await current.take()) {
      await workOn(current, key, signal);
    }
  };

  const run = async (signal: AbortSignal): Promise<void> => {
    if (signal.aborted) return;
    const current = new WorkQueue({ observer, ...(options.backoff ? { backoff: options.backoff } : {}) });
    queue = current;
    const enqueueAll = (): void => {
      for (const source of sources) for (const key of source.keys()) current.add(key);
    };
    enqueueAll();
    const resync = setInterval(enqueueAll, resyncMs);
    signal.addEventListener('abort', () => current.close(), { once: true });
    await Promise.all(Array.from({ length: concurrency }, () => worker(current, signal)));
    clearInterval(resync);
    queue = undefined;
  };

  return { name, run };
};
