import type { Metrics } from '@unbounded/telemetry';

import type { QueueObserver } from './work-queue.ts';

/** Metric names as operators know them from client-go and controller-runtime. */
export const queueMetrics = (metrics: Metrics, name: string): QueueObserver => {
  const depth = metrics.gauge({ name: 'workqueue_depth', help: 'Current depth of workqueue', labels: ['name'] });
  const adds = metrics.counter({
    name: 'workqueue_adds_total',
    help: 'Total number of adds handled by workqueue',
    labels: ['name'],
  });
  const retries = metrics.counter({
    name: 'workqueue_retries_total',
    help: 'Total number of retries handled by workqueue',
    labels: ['name'],
  });
  const waited = metrics.histogram({
    name: 'workqueue_queue_duration_seconds',
    help: 'How long in seconds an item stays in workqueue before being requested',
    labels: ['name'],
  });
  const worked = metrics.histogram({
    name: 'workqueue_work_duration_seconds',
    help: 'How long in seconds processing an item from workqueue takes.',
    labels: ['name'],
  });
  depth.set({ name }, 0);
  return {
    added: (value) => {
      adds.inc({ name });
      depth.set({ name }, value);
    },
    taken: (value, waitedMs) => {
      depth.set({ name }, value);
      waited.observe({ name }, waitedMs / 1000);
    },
    done: (workedMs) => worked.observe({ name }, workedMs / 1000),
    retried: () => retries.inc({ name }),
  };
};

const RECONCILE_RESULTS = ['success', 'requeue_after', 'rejected', 'error'] as const;
export type ReconcileResult = (typeof RECONCILE_RESULTS)[number];

export const reconcileMetrics = (metrics: Metrics, controller: string) => {
  const total = metrics.counter({
    name: 'controller_runtime_reconcile_total',
    help: 'Total number of reconciliations per controller',
    labels: ['controller', 'result'],
  });
  const seconds = metrics.histogram({
    name: 'controller_runtime_reconcile_time_seconds',
    help: 'Length of time per reconciliation per controller',
    labels: ['controller'],
  });
  for (const result of RECONCILE_RESULTS) total.inc({ controller, result }, 0);
  return (result: ReconcileResult, durationMs: number): void => {
    total.inc({ controller, result });
    seconds.observe({ controller }, durationMs / 1000);
  };
};

export const leaderMetric = (metrics: Metrics, name: string): ((isLeader: boolean) => void) => {
  const gauge = metrics.gauge({
    name: 'leader_election_master_status',
    help: 'Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master',
    labels: ['name'],
  });
  gauge.set({ name }, 0);
  return (isLeader) => gauge.set({ name }, isLeader ? 1 : 0);
};
