import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { prometheusEndpoint, PROMETHEUS, rulesFile } from '../../features/prometheus/prometheus.ts';
import { type LabLayout, namespaceOf } from '../../layout/layout.ts';
import { inNamespace, runAsync } from '../../machine/command.ts';
import { pidOf } from '../../machine/daemon.ts';

/** What tests ask the lab's Prometheus. */

export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [seconds: number, text: string];
}

interface Answer {
  readonly status: string;
  readonly error?: string;
  readonly data?: { readonly result: readonly Series[] };
}

/** @throws Error with what Prometheus says of the expression */
export const queryMetrics = async (layout: LabLayout, expression: string): Promise<readonly Series[]> => {
  const url = `http://${prometheusEndpoint(layout)}/api/v1/query`;
  const argv = ['curl', '-sS', '--max-time', '10', '--data-urlencode', `query=${expression}`, url];
  const text = await runAsync([...inNamespace(namespaceOf(layout.controlPlane.name)), ...argv]);
  const { status, error, data } = JSON.parse(text) as Answer;
  if (status !== 'success' || !data) throw new Error(`${expression}: ${error}`);
  return data.result;
};

/** Alerts that fire, by name. */
export const firingAlerts = async (layout: LabLayout): Promise<string[]> => {
  const series = await queryMetrics(layout, 'ALERTS{alertstate="firing"}');
  return [...new Set(series.map(({ metric }) => metric['alertname']!))].sort();
};

/** What `promtool check metrics` says of a program's metrics. @throws Error when they cannot be read */
export const checkMetrics = async (layout: LabLayout, address: string): Promise<string> => {
  const argv = ['curl', '-fsS', '--max-time', '10', `http://${address}/metrics`];
  const input = await runAsync([...inNamespace(namespaceOf(layout.controlPlane.name)), ...argv]);
  const { stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { encoding: 'utf8', input });
  return `${stdout}${stderr}`.trim();
};

/** The chart's rules, but that a state need not last as long: the lab has no time for it. */
export const shortenWaits = (duration: string): void => {
  writeFileSync(rulesFile, readFileSync(rulesFile, 'utf8').replaceAll(/^( +for: ).*$/gm, `$1${duration}`));
  const pid = pidOf(PROMETHEUS);
  if (pid === undefined) throw new Error('Prometheus does not run');
  process.kill(pid, 'SIGHUP');
};
