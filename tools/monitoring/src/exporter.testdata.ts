import { createServer, type Server } from 'node:http';
import { declaredMetrics } from './declared-metrics.ts';
import { ALERTS } from './alerts.ts';
import { panelsOf } from './dashboard.ts';
import { DASHBOARDS } from './dashboards.ts';

/** A program that has every metric that the code declares, and nothing else but prom-client's own. */

type Labels = Readonly<Record<string, string>>;

const expressions = [
  ...ALERTS.map(({ expr }) => expr),
  ...DASHBOARDS.flatMap(panelsOf)
    .flatMap(({ queries }) => queries)
    .map(({ expr }) => expr),
];

/** Values that expressions ask for, by label, and another one. */
const valuesOf = (label: string): string[] => {
  const asked = expressions.flatMap((expr) =>
    [...expr.matchAll(new RegExp(`[{,]${label}=~?"([^"$]*)"`, 'g'))].flatMap(([, value]) => value!.split('|')),
  );
  return [...new Set([...asked.filter((value) => /^[\w-]+$/.test(value)), 'other'])];
};

const combinations = (labels: readonly string[]): Labels[] =>
  labels.reduce<Labels[]>(
    (all, label) => all.flatMap((known) => valuesOf(label).map((value) => ({ ...known, [label]: value }))),
    [{}],
  );

const seriesOf = (name: string, labels: Labels): string =>
  `${name}{${Object.entries(labels)
    .map(([label, text]) => `${label}="${text}"`)
    .join(',')}}`;

/** All series, by whether they count. Reading the code takes longer than a scrape may. */
const allSeries = (): { readonly counters: readonly string[]; readonly gauges: readonly string[] } => {
  const counters = new Set([seriesOf('process_cpu_seconds_total', {})]);
  const ofLibrary = ['process_resident_memory_bytes', 'process_start_time_seconds', 'nodejs_eventloop_lag_p99_seconds'];
  const gauges = new Set(ofLibrary.map((name) => seriesOf(name, {})));
  for (const { name, type, labels } of declaredMetrics().flatMap(({ metrics }) => metrics))
    for (const set of combinations(labels)) {
      if (type !== 'histogram') (type === 'counter' ? counters : gauges).add(seriesOf(name, set));
      else {
        for (const le of ['0.1', '+Inf']) counters.add(seriesOf(`${name}_bucket`, { ...set, le }));
        for (const part of ['sum', 'count']) counters.add(seriesOf(`${name}_${part}`, set));
      }
    }
  return { counters: [...counters], gauges: [...gauges] };
};

export interface Exporter {
  readonly address: string;
  readonly server: Server;
}

/** @param gauge the value of all gauges; counters count scrapes */
export const startExporter = async (gauge: number): Promise<Exporter> => {
  const { counters, gauges } = allSeries();
  let count = 0;
  const server = createServer((_, response) => {
    count += 1;
    const lines = [...counters.map((series) => `${series} ${count}`), ...gauges.map((series) => `${series} ${gauge}`)];
    response.end(`${lines.join('\n')}\n`);
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the exporter must have a TCP port');
  return { address: `127.0.0.1:${address.port}`, server };
};
