import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '@unbounded/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { alertRules } from './alerts.ts';
import { type Exporter, startExporter } from './exporter.testdata.ts';
import { panelQueries } from './panel-queries.ts';

/**
 * Every panel in a real Prometheus. Two targets have all metrics of the code, one with 0 as the value of each gauge and one with 1, so that
 * panels of what is wrong have something to show.
 */

const folder = mkdtempSync(join(tmpdir(), 'panels-'));
const exporters: Exporter[] = [];
let prometheus: ChildProcess | undefined;
let at = '';

const scrapeConfig = (job: string) => ({
  job_name: `unbounded-${job}`,
  scrape_interval: '1s',
  static_configs: exporters.map(({ address }, index) => ({
    targets: [address],
    labels: { node: `n${index}`, pod: `${job}-${index}` },
  })),
});

/** A port that is free now. */
const freePort = async (): Promise<string> => {
  const { address, server } = await startExporter(0);
  await new Promise((resolve) => void server.close(resolve));
  return address;
};

interface Answer {
  readonly status: string;
  readonly error?: string;
  readonly data?: { readonly result: readonly { readonly metric: Readonly<Record<string, string>> }[] };
}
const query = async (expr: string): Promise<Answer> =>
  (await (await fetch(`http://${at}/api/v1/query?query=${encodeURIComponent(expr)}`)).json()) as Answer;
const seriesOf = async (expr: string): Promise<number> => (await query(expr)).data?.result.length ?? 0;

beforeAll(async () => {
  exporters.push(await startExporter(0), await startExporter(1));
  at = await freePort();
  writeFileSync(join(folder, 'alerts.yaml'), alertRules());
  const config = {
    global: { evaluation_interval: '1s' },
    rule_files: ['alerts.yaml'],
    scrape_configs: ['node-dataplane', 'site-membership'].map(scrapeConfig),
  };
  writeFileSync(join(folder, 'prometheus.yaml'), stringify(config));
  const flags = [`--config.file=${folder}/prometheus.yaml`, `--storage.tsdb.path=${folder}/data`];
  prometheus = spawn('prometheus', [...flags, `--web.listen-address=${at}`], { stdio: 'ignore' });
  const scraped = 'count(count_over_time(up[1m]) >= 4)';
  await until('all targets were scraped four times', async () => (await seriesOf(scraped).catch(() => 0)) > 0);
  await until('of all of them', async () => (await seriesOf(`${scraped} == 4`)) > 0);
});
afterAll(async () => {
  prometheus?.kill();
  for (const { server } of exporters) server.close().closeAllConnections();
  if (prometheus) await new Promise((resolve) => void prometheus?.once('exit', resolve));
  rmSync(folder, { recursive: true });
});

const queries = panelQueries({ rateInterval: '4s', values: { node: 'n1' } });

test.each(queries)('$dashboard: $panel has data', async ({ expr }) => {
  expect(await query(expr)).toMatchObject({ status: 'success' });
  expect(await seriesOf(expr), expr).toBeGreaterThan(0);
});

test('a panel of a metric that there is not has none', async () => {
  expect(await seriesOf('sum(rate(unbounded_overlay_renamed_packets_total[4s]))')).toBe(0);
});

test('alerts are evaluated there, too', async () => {
  const pending = await until(
    'one is pending',
    async () => (await seriesOf('ALERTS{alertname="UnboundedGatewayDown"}')) || false,
  );
  expect(pending).toBeGreaterThan(0);
});
