import type { Metrics } from './metrics.ts';

export interface StateMetrics {
  /** As the metrics that they are made of, but for gauges: they say nothing from each `forget` until they are set again. */
  readonly metrics: Metrics;
  readonly forget: () => void;
}

/** For what only the leader of several replicas says: when it no longer leads, what it said must not stand beside what another one says. */
export const createStateMetrics = (metrics: Metrics): StateMetrics => {
  const gauges = new Set<{ reset(): void }>();
  const gauge: Metrics['gauge'] = (options) => {
    const created = metrics.gauge(options);
    gauges.add(created);
    return created;
  };
  return { metrics: { ...metrics, gauge }, forget: () => gauges.forEach((each) => each.reset()) };
};
