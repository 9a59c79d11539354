import { randomUUID } from 'node:crypto';
import { backoffDelay, type BackoffOptions } from '@unbounded/controller-runtime';
import { createMergePatch, type JsonObject, type NodeReport, type Push } from '@unbounded/status';
import type { Logger } from '@unbounded/telemetry';
import { withDeadline } from '../deadline.ts';
import { NoAggregatorError, type SendPush } from './push.port.ts';

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
  lookMs: 500,
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
  return {
    /** Undefined: there is no report at the other end. */
    changeOf: (document: JsonObject): JsonObject | undefined =>
      base && (createMergePatch(base.document, document) ?? {}),
    next(document: JsonObject): Push {
      revision++;
      const patch = base && (createMergePatch(base.document, document) ?? {});
      return patch ? { epoch, revision, base: base!.revision, patch } : { epoch, revision, report: document };
    },
    accepted: ({ revision: at }: Push, document: JsonObject) => void (base = { revision: at, document }),
    lost: () => void (base = undefined),
  };
};

export const createPushLoop = (options: PushLoopOptions): PushLoop => {
  const { report, send, logger, onPushed = () => undefined, timings = TIMINGS } = options;
  const stopping = new AbortController();
  const revisions = createRevisions();
  let failures = 0;
  let isAbsent = false;
  let pushing: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let earliestMs = -Infinity;

  // As it goes over the wire: members that are undefined are not there.
  const documentNow = (): JsonObject => JSON.parse(JSON.stringify(report())) as JsonObject;

  const push = async (): Promise<void> => {
    const document = documentNow();
    const next = revisions.next(document);
    const limits = { deadlineMs: timings.deadlineMs, stopping: stopping.signal };
    const answer = await withDeadline((signal) => send(next, signal), limits);
    onPushed(answer);
    if (answer === 'accepted') return revisions.accepted(next, document);
    revisions.lost();
    const whole = revisions.next(document);
    const second = await withDeadline((signal) => send(whole, signal), limits);
    onPushed(second);
    if (second === 'accepted') revisions.accepted(whole, document);
  };
  const pushSafely = async (): Promise<void> => {
    try {
      await push();
      if (failures > 0) logger.info('status reports are accepted again');
      failures = 0;
    } catch (error) {
      revisions.lost(); // whether it arrived is not known
      if (stopping.signal.aborted) return;
      failures++;
      isAbsent = error instanceof NoAggregatorError;
      onPushed('failed');
      const level = failures === 1 ? 'warn' : 'debug';
      logger[level](
        { error: (error as Error).message, failures },
        'cannot push the status report; forwarding continues',
      );
    }
  };
  const begin = (): void => {
    clearTimeout(timer);
    timer = undefined;
    pushing ??= pushSafely().finally(() => {
      pushing = undefined;
      earliestMs = performance.now() + timings.spacingMs;
      const backoff = isAbsent ? timings.absentBackoff : timings.backoff;
      if (!stopping.signal.aborted) schedule(failures > 0 ? backoffDelay(failures, backoff) : timings.everyMs);
    });
  };
  const schedule = (inMs: number): void => {
    clearTimeout(timer);
    timer = setTimeout(begin, inMs);
  };
  schedule(0);
  let looking: NodeJS.Timeout | undefined;
  const compare = (): void => {
    looking = undefined;
    if (pushing || failures > 0) return; // the next push is due anyway
    const patch = revisions.changeOf(documentNow());
    if (patch && isNotable(patch)) schedule(Math.max(0, earliestMs - performance.now()));
  };

  return {
    look() {
      // A report of thousands of peers is not compared at each of many changes.
      if (!stopping.signal.aborted) looking ??= setTimeout(compare, timings.lookMs);
    },
    async stop() {
      stopping.abort(new Error('the agent ends'));
      clearTimeout(timer);
      clearTimeout(looking);
      await pushing;
    },
  };
};
