import { type EventRecorder, isConflict, type KubeObject, NoAnswerError, TransportError } from '@unbounded/kube';
import type { Logger, Metrics } from '@unbounded/telemetry';

import { backoffDelay, type BackoffOptions } from './backoff.ts';
import { again, done, type Verdict } from './verdict.ts';

/**
 * The writes of a round, each on its own: an object that the API server refuses (a schema, a webhook, a policy) is told and
 * retried by itself, and the round goes on with the others. Only what concerns all writes ends a round: no connection.
 */
export interface ObjectWrites {
  /**
   * Does the write unless the object rests after a failure. `endsRound` says which errors concern other writes as well, and are
   * thrown: by default none. @throws TransportError
   */
  attempt(
    about: KubeObject,
    what: string,
    write: () => Promise<unknown>,
    endsRound?: (error: Error) => boolean,
  ): Promise<void>;
  /** Whether {@link attempt} would leave it, because the object rests after a failure; that is remembered as after an attempt. */
  isResting(about: KubeObject, what: string): boolean;
  /** Whether the last attempt was refused, and by no faster writer. */
  isRefused(about: KubeObject, what: string): boolean;
  /** Ends the round: comes back when the first resting object may be tried again, at the latest after `latestMs`. */
  verdict(latestMs?: number): Verdict;
}

export interface ObjectWritesOptions {
  readonly recorder: EventRecorder;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Monotonic, milliseconds. */
  readonly now?: () => number;
  readonly backoff?: BackoffOptions;
}

interface Failure {
  /** Refusals, and conflicts with other writers, each in a row. */
  readonly count: number;
  readonly conflicts: number;
  readonly untilMs: number;
}

const DEFAULT_BACKOFF: BackoffOptions = { baseMs: 500, maxMs: 15_000 };
/** Another writer was faster: the next look at the caches solves it, unless these lag. */
const CONFLICT_BACKOFF: BackoffOptions = { baseMs: 50, maxMs: 5000 };
const LONGEST_REASON = 500;

/** No connection, or no work any more. A write that is not answered may hang in a webhook for its object. */
const isOfAll = (error: Error): boolean =>
  (error instanceof TransportError && !(error instanceof NoAnswerError)) || error.name === 'AbortError';

export const createObjectWrites = ({
  recorder,
  logger,
  metrics,
  now = () => performance.now(),
  backoff = DEFAULT_BACKOFF,
}: ObjectWritesOptions): ObjectWrites => {
  const failures = new Map<string, Failure>();
  /** Wanted in this round. */
  let wanted = new Set<string>();
  const refused = metrics.counter({
    name: 'unbounded_net_controller_refused_writes_total',
    help: 'Writes that the API server refused, by kind; conflicts with other writers are not counted.',
    labels: ['kind'],
  });

  const fail = (key: string, about: KubeObject, what: string, error: Error): void => {
    const conflict = isConflict(error);
    const before = failures.get(key);
    const count = (before?.count ?? 0) + (conflict ? 0 : 1);
    const conflicts = conflict ? (before?.conflicts ?? 0) + 1 : 0;
    const restMs = conflict ? backoffDelay(conflicts, CONFLICT_BACKOFF) : backoffDelay(count, backoff);
    failures.set(key, { count, conflicts, untilMs: now() + restMs });
    const object = { kind: about.kind, name: about.metadata.name, what };
    if (conflict) {
      logger.debug({ ...object, reason: error.message }, 'conflict, retried');
      return;
    }
    refused.inc({ kind: about.kind ?? '' });
    logger.warn({ ...object, err: error }, 'write refused, retried; other objects are written');
    if (count > 1) return;
    const note = `${what} was refused and is retried: ${error.message.slice(0, LONGEST_REASON)}; correct the object, or the policy or webhook that refuses it`;
    recorder.record({ about, type: 'Warning', reason: 'WriteRefused', action: 'Write', note });
  };

  const keyOf = ({ kind, metadata: { uid, name } }: KubeObject, what: string): string =>
    `${kind} ${uid ?? name} ${what}`;
  const want = (about: KubeObject, what: string): { readonly key: string; readonly isResting: boolean } => {
    const key = keyOf(about, what);
    wanted.add(key);
    return { key, isResting: (failures.get(key)?.untilMs ?? 0) > now() };
  };

  return {
    isResting: (about, what) => want(about, what).isResting,
    isRefused: (about, what) => (failures.get(keyOf(about, what))?.count ?? 0) > 0,
    attempt: async (about, what, write, endsRound = () => false) => {
      const { key, isResting } = want(about, what);
      refused.inc({ kind: about.kind ?? '' }, 0); // so that the first refusal is an increase
      if (isResting) return;
      try {
        await write();
        failures.delete(key);
      } catch (error) {
        if (!(error instanceof Error) || isOfAll(error) || endsRound(error)) throw error;
        fail(key, about, what, error);
      }
    },
    verdict: (latestMs) => {
      for (const key of failures.keys()) if (!wanted.has(key)) failures.delete(key);
      wanted = new Set();
      const first = Math.min(latestMs ?? Infinity, ...[...failures.values()].map(({ untilMs }) => untilMs - now()));
      return Number.isFinite(first) ? again(Math.max(first, 1)) : done;
    },
  };
};
