import { again, done, type Reconcile } from '@unbounded/controller-runtime';
import { type EgressPlan, type EgressSnapshot, planEgress } from '@unbounded/egress';
import type { Pod } from '@unbounded/kube';

import type { EgressObjects } from './cluster/egress-objects.ts';
import type { EgressMetrics } from './egress-metrics.ts';
import { createPodEvents } from './pod-events.ts';
import type { News } from './writes/news.ts';
import type { OwnWrites } from './writes/own-writes.ts';
import { type PlanWriteOptions, writePlan } from './writes/plan-writes.ts';

/** A write is in the caches after some milliseconds, and its event asks for a plan; this is for an event that nobody hears. */
const LOOK_AGAIN_MS = 100;
/** After this the API server is asked what it has: an object can be gone before the cache has shown it. */
const LONGEST_WAIT_MS = 5000;

/** `clients`: those whose writes `ownWrites` notes. */
export interface EgressReconcilerOptions extends PlanWriteOptions {
  /** What the caches hold. */
  readonly objects: () => EgressObjects;
  readonly podOf: (key: string) => Pod | undefined;
  readonly snapshotOf: (objects: EgressObjects) => EgressSnapshot;
  /** Milliseconds until it is known which agents are alive and which blocks Services have; 0: it is. */
  readonly untilKnownMs: () => number;
  readonly ownWrites: OwnWrites;
  readonly news: Pick<News, 'take'>;
  readonly metrics: EgressMetrics;
  /** Monotonic, milliseconds. */
  readonly elapsed?: () => number;
}

/** Decides whether a plan may be made: not before the caches show what we, or the leader before us, have written. */
const createGate = ({ ownWrites, untilKnownMs, elapsed = () => performance.now() }: EgressReconcilerOptions) => {
  let term: AbortSignal | undefined;
  let isWritten = false;
  let waitingSinceMs: number | undefined;
  return {
    /** Milliseconds to wait; 0: plan. `isNewTerm`: nothing has been planned since we became the leader. */
    open: async (signal: AbortSignal): Promise<{ readonly waitMs: number; readonly isNewTerm: boolean }> => {
      const isNewTerm = term !== signal;
      const hasWaitedLong = waitingSinceMs !== undefined && elapsed() - waitingSinceMs > LONGEST_WAIT_MS;
      if (isNewTerm || !isWritten || hasWaitedLong) {
        await ownWrites.refresh(signal);
        [term, isWritten, waitingSinceMs] = [signal, true, undefined];
      }
      if (!ownWrites.areSeen()) {
        waitingSinceMs ??= elapsed();
        return { waitMs: LOOK_AGAIN_MS, isNewTerm };
      }
      waitingSinceMs = undefined;
      return { waitMs: untilKnownMs(), isNewTerm };
    },
    /** Writes whose answer never came are looked up before the next plan. */
    during: async (write: () => Promise<void>): Promise<void> => {
      isWritten = false;
      await write();
      isWritten = true;
    },
  };
};

/** One key stands for the cluster: an address has one owner only with a view of all nodes. */
export const egressReconciler = (options: EgressReconcilerOptions): Reconcile => {
  const { objects, snapshotOf, news, writes, recorder, metrics } = options;
  const { elapsed = () => performance.now() } = options;
  const gate = createGate(options);
  const podEvents = createPodEvents(recorder, options.podOf);

  /** A plan was begun that is not all written yet. */
  let isOwed = true;

  const plan = (current: EgressObjects): EgressPlan => {
    const startedMs = elapsed();
    const snapshot = snapshotOf(current);
    const planned = planEgress(snapshot);
    metrics.planned(planned, snapshot.nodes, (elapsed() - startedMs) / 1000);
    return planned;
  };

  return async (_key, signal) => {
    const { waitMs, isNewTerm } = await gate.open(signal);
    if (isNewTerm) podEvents.beginTerm();
    isOwed ||= isNewTerm;
    if (waitMs > 0) return again(waitMs);
    isOwed = news.take() || isOwed;
    if (!isOwed) return done;
    const current = objects();
    const planned = plan(current);
    await gate.during(() => writePlan(current, planned, { ...options, signal }));
    podEvents.tell(planned);
    const verdict = writes.verdict();
    isOwed = verdict.kind !== 'done';
    return verdict;
  };
};
