import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

/** Seconds; from a cache hit to a call that has hung. */
const DURATION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

/** Gauges of prom-client that are named as counters, which `promtool check metrics` reports; nodejs_active_…{type} has the same by type. */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

interface MetricOptions<L extends string> {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly L[];
}

/** The metrics of one process. Asking twice for a name gives the same metric. */
export interface Metrics {
  counter<L extends string = never>(options: MetricOptions<L>): Counter<L>;
  gauge<L extends string = never>(options: MetricOptions<L>): Gauge<L>;
  histogram<L extends string = never>(
    options: MetricOptions<L> & { readonly buckets?: readonly number[] },
  ): Histogram<L>;
  /** Called before each rendering, until it is disposed of: for what somebody else counts. */
  onRender(refresh: () => void): Disposable;
  /** The Prometheus text format. */
  render(): Promise<string>;
  readonly contentType: string;
}

export interface MetricsOptions {
  /** Adds `process_*` and `nodejs_*`, which cost a timer and a GC observer. */
  readonly processMetrics?: boolean;
}

export const createMetrics = ({ processMetrics = false }: MetricsOptions = {}): Metrics => {
  const registry = new Registry();
  if (processMetrics) {
    collectDefaultMetrics({ register: registry });
    for (const name of MISNAMED) registry.removeSingleMetric(name);
  }
  const once = <M>(name: string, create: () => M): M => (registry.getSingleMetric(name) as M | undefined) ?? create();
  const common = <L extends string>({ name, help, labels = [] }: MetricOptions<L>) => ({
    name,
    help,
    labelNames: [...labels],
    registers: [registry],
  });
  const refreshes = new Set<() => void>();
  return {
    counter: (options) => once(options.name, () => new Counter(common(options))),
    gauge: (options) => once(options.name, () => new Gauge(common(options))),
    histogram: (options) =>
      once(
        options.name,
        () => new Histogram({ ...common(options), buckets: [...(options.buckets ?? DURATION_BUCKETS)] }),
      ),
    onRender(refresh) {
      refreshes.add(refresh);
      return { [Symbol.dispose]: () => void refreshes.delete(refresh) };
    },
    async render() {
      for (const refresh of refreshes) refresh();
      return await registry.metrics();
    },
    contentType: registry.contentType,
  };
};
