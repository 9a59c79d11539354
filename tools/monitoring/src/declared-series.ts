import { declaredMetrics } from './declared-metrics.ts';

/** What Prometheus stores of our programs: the time series of every metric that the code declares, with their labels. */
export interface Series {
  readonly type: 'counter' | 'gauge';
  readonly labels: readonly string[];
}

/** Of every target; `node` is set by the chart's PodMonitor. */
export const TARGET_LABELS = ['namespace', 'pod', 'container', 'node', 'job', 'instance'];

/** Not declared in our code: of Prometheus itself, and of prom-client's default metrics. */
const OTHERS: readonly (readonly [string, Series])[] = [
  ['up', { type: 'gauge', labels: [] }],
  ['ALERTS', { type: 'gauge', labels: ['alertname', 'alertstate', 'severity'] }],
  ['process_cpu_seconds_total', { type: 'counter', labels: [] }],
  ['process_resident_memory_bytes', { type: 'gauge', labels: [] }],
  ['process_start_time_seconds', { type: 'gauge', labels: [] }],
  ['nodejs_eventloop_lag_p99_seconds', { type: 'gauge', labels: [] }],
];

const ofHistogram = (name: string, labels: readonly string[]): [string, Series][] => [
  [`${name}_bucket`, { type: 'counter', labels: [...labels, 'le'] }],
  [`${name}_sum`, { type: 'counter', labels }],
  [`${name}_count`, { type: 'counter', labels }],
];

export const declaredSeries = (): ReadonlyMap<string, Series> => {
  const metrics = declaredMetrics().flatMap((file) => file.metrics);
  const own = metrics.flatMap(({ name, type, labels }): [string, Series][] =>
    type === 'histogram' ? ofHistogram(name, labels) : [[name, { type, labels }]],
  );
  return new Map([...OTHERS, ...own]);
};
