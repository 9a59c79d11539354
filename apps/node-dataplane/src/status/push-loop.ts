import { randomUUID } from 'node:crypto';
import { backoffDelay, type BackoffOptions } from '@unbounded/controller-runtime';
import { createMergePatch, type JsonObject, type NodeReport, type Push } from '@unbounded/status';
import type { Logger } from '@unbounded/telemetry';
import { withDeadline } from '../deadline.ts';
import { NoAggregatorError, type PushAnswer, type SendPush } from './push.port.ts';

/**
 * Pushes the node's report every 10 s, and soon when anything notable changed. One push at a time, always of the latest state: an aggregator
 * that is slow or away costs no memory, and nobody waits for it.
 */
export interface PushLoop {
  /** Something may have changed. Never waits. */
  look(): void;
  stop(): Promise<void>;
}

export interface PushTimings {
  readonly everyMs: number;
  /** Between two pushes, at least; what changes meanwhile is in the second one. */
  readonly spacingMs: number;
  /** Until changes are looked at, which are gathered meanwhile. */
  readonly lookMs: number;
  readonly deadlineMs: number;
  readonly backoff: BackoffOptions;
  /** While there is no aggregator. */
  readonly absentBackoff: BackoffOptions;
}

export interface PushLoopOptions {
  readonly report: () => NodeReport;
  readonly send: SendPush;
  readonly logger: Logger;
  /** Told of each push: result is accepted, resync or failed. */
  readonly onPushed?: (result: 'accepted' | 'resync' | 'failed') => void;
  readonly timings?: PushTimings;
}

const TIMINGS: PushTimings = {
  everyMs: 10_000,
  spacingMs: 1000,
  lookMs: 200,
  deadlineMs: 10_000,
  backoff: { baseMs: 1000, maxMs: 10_000 },
  absentBackoff: { baseMs: 5000, maxMs: 120_000 },
};

/** What changes from moment to moment, and is no reason to push before its time. */
const VOLATILE = new Set(['rttMs', 'lossRatio', 'rxBytes', 'txBytes', 'latestHandshakeTime', 'drops']);

const isNotable = (patch: JsonObject): boolean =>
  Object.entries(patch).some(([name, value]) => {
    if (VOLATILE.has(name)) return false;
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? isNotable(value as JsonObject) : true;
  });

/** Reports as the other end counts them: revisions of this process, and deltas from what was accepted last. */
const createRevisions = () => {
  const epoch = randomUUID();
  let revision = 0;
  let base: { readonly revision: number; readonly document: JsonObject } | undefined;
  const changeOf = (document: JsonObject): JsonObject | undefined =>
    base && (createMergePatch(base.document, document) ?? {});
  return {
    /** Undefined: there is no report at the other end. */
    changeOf,
    next(document: JsonObject): Push {
      revision++;
      const patch = changeOf(document);
      return patch ? { epoch, revision, base: base!.revision, patch } : { epoch, revision, report: document };
    },
    accepted: ({ revision: at }: Push, document: JsonObject) => void (base = { revision: at, document }),
    lost: () => void (base = undefined),
  };
};

/** One push, whole where the other end asks for that; what came of it until now. */
const createPusher = (
  { send, logger, onPushed = () => undefined }: PushLoopOptions,
  { deadlineMs }: PushTimings,
  stopping: AbortSignal,
) => {
  const revisions = createRevisions();
  let failures = 0;
  /** What the log says. */
  let reason = '';
  let isAbsent = false;
  const pushOnce = async (document: JsonObject): Promise<PushAnswer> => {
    const next = revisions.next(document);
    const answer = await withDeadline((signal) => send(next, signal), { deadlineMs, stopping });
    onPushed(answer);
    if (answer === 'accepted') revisions.accepted(next, document);
    else revisions.lost();
    return answer;
  };
  const fail = (error: Error): void => {
    revisions.lost(); // whether it arrived is not known
    if (stopping.aborted) return;
    failures++;
    isAbsent = error instanceof NoAggregatorError;
    onPushed('failed');
    const level = error.message === reason ? 'debug' : 'warn';
    reason = error.message;
    logger[level]({ error: error.message, failures }, 'cannot push the status report; forwarding continues');
  };
  return {
    /** Never rejects. */
    async push(document: JsonObject): Promise<void> {
      try {
        if ((await pushOnce(document)) === 'resync') await pushOnce(document);
        if (failures > 0) logger.info('status reports are accepted again');
        [failures, reason] = [0, ''];
      } catch (error) {
        fail(error as Error);
      }
    },
    changeOf: revisions.changeOf,
    /** Until the next attempt after failures; undefined: the last push arrived. */
    retryMs: ({ backoff, absentBackoff }: PushTimings): number | undefined =>
      failures === 0 ? undefined : backoffDelay(failures, isAbsent ? absentBackoff : backoff),
  };
};

export const createPushLoop = (options: PushLoopOptions): PushLoop => {
  const { report, timings = TIMINGS } = options;
  const stopping = new AbortController();
  const pusher = createPusher(options, timings, stopping.signal);
  let pushing: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let looking: NodeJS.Timeout | undefined;
  let earliestMs = -Infinity;

  // As it goes over the wire: members that are undefined are not there.
  const documentNow = (): JsonObject => JSON.parse(JSON.stringify(report())) as JsonObject;

  const schedule = (inMs: number): void => {
    clearTimeout(timer);
    timer = setTimeout(begin, inMs);
  };
  const onEnd = (): void => {
    pushing = undefined;
    earliestMs = performance.now() + timings.spacingMs;
    if (stopping.signal.aborted) return;
    const retryMs = pusher.retryMs(timings);
    schedule(retryMs ?? timings.everyMs);
    if (retryMs === undefined) look(); // it may have changed meanwhile
  };
  const begin = (): void => {
    pushing ??= pusher.push(documentNow()).finally(onEnd);
  };
  const compare = (): void => {
    looking = undefined;
    if (pushing) return; // at its end
    const patch = pusher.changeOf(documentNow());
    if (patch && isNotable(patch)) schedule(Math.max(0, earliestMs - performance.now()));
  };
  /** A report of thousands of peers is not compared at each of many changes. */
  const look = (): void => {
    if (!stopping.signal.aborted) looking ??= setTimeout(compare, timings.lookMs);
  };
  schedule(0);

  return {
    look,
    async stop() {
      stopping.abort(new Error('the agent ends'));
      clearTimeout(timer);
      clearTimeout(looking);
      await pushing;
    },
  };
};
