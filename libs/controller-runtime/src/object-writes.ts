import { type EventRecorder, isConflict, type KubeObject, TransportError } from '@unbounded/kube';
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
  readonly count: number;
  readonly untilMs: number;
}

const DEFAULT_BACKOFF: BackoffOptions = { baseMs: 500, maxMs: 15_000 };
/** Another writer was faster: the next look at the caches solves it. */
const CONFLICT_MS = 50;
const LONGEST_REASON = 500;

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
    const count = conflict ? (failures.get(key)?.count ?? 0) : (failures.get(key)?.count ?? 0) + 1;
    failures.set(key, { count, untilMs: now() + (conflict ? CONFLICT_MS : backoffDelay(count, backoff)) });
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

  return {
    attempt: async (about, what, write, endsRound = () => false) => {
      const key = `${about.kind} ${about.metadata.uid ?? about.metadata.name} ${what}`;
      wanted.add(key);
      refused.inc({ kind: about.kind ?? '' }, 0); // so that the first refusal is an increase
      if ((failures.get(key)?.untilMs ?? 0) > now()) return;
      try {
        await write();
        failures.delete(key);
      } catch (error) {
        if (!(error instanceof Error) || error instanceof TransportError || error.name === 'AbortError') throw error;
        if (endsRound(error)) throw error;
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
