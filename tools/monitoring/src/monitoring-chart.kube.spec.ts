import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { chartFolder, helmProgram } from '@unbounded/testing/chart';
import { expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { ALERTS, alertRules } from './alerts.ts';
import { DASHBOARDS } from './dashboards.ts';
import { monitoringFiles } from './files.ts';

/** The subchart alone: what helm makes of the generated files. */

const chart = join(chartFolder, 'charts/monitoring');
const helm = (...args: string[]): string => execFileSync(helmProgram(), args, { encoding: 'utf8', stdio: 'pipe' });

interface Manifest {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly data: Readonly<Record<string, string>>;
  readonly spec: object;
}

const render = (...settings: string[]): Manifest[] =>
  parseAllDocuments(
    helm('template', 'net', chart, '--namespace', 'elsewhere', ...settings.flatMap((setting) => ['--set', setting])),
  )
    .map((document) => document.toJS() as Manifest | null)
    .filter((object) => object !== null);
const ofKind = (objects: readonly Manifest[], kind: string): Manifest[] => objects.filter((one) => one.kind === kind);

test('helm finds nothing to complain of', () => {
  expect(helm('lint', '--strict', chart)).toContain('0 chart(s) failed');
});

test('every dashboard is a ConfigMap that Grafana’s sidecar finds, byte by byte as generated', () => {
  const maps = ofKind(render(), 'ConfigMap');
  expect(maps).toHaveLength(DASHBOARDS.length);
  for (const { data, metadata } of maps) {
    const [[name, text]] = Object.entries(data) as [[string, string]];
    expect(text).toBe(monitoringFiles().get(`dashboards/${name}`));
    expect(metadata.labels).toMatchObject({ grafana_dashboard: '1', 'app.kubernetes.io/part-of': 'unbounded' });
    expect(metadata).toMatchObject({ namespace: 'elsewhere', annotations: { grafana_folder: 'Unbounded' } });
  }
});

test('the alerts are as generated, with links to the page of one’s own', () => {
  const [rule] = ofKind(render(), 'PrometheusRule');
  expect(rule!.spec).toEqual(parse(alertRules()));
  const [linked] = ofKind(render('alerts.runbookBaseUrl=https://wiki.example/page'), 'PrometheusRule');
  const links = JSON.stringify(linked!.spec).match(/https:\/\/wiki\.example\/page#unbounded\w+/g);
  expect(links).toHaveLength(ALERTS.length);
});

test('labels that a Prometheus selects by are of its objects alone', () => {
  const objects = render('podMonitor.labels.release=stack', 'alerts.labels.release=stack');
  const selected = objects.filter(({ metadata }) => metadata.labels['release'] === 'stack');
  expect(selected.map(({ kind }) => kind).sort()).toEqual(['PodMonitor', 'PrometheusRule']);
});

test.each([
  ['dashboards', ['PodMonitor', 'PrometheusRule']],
  ['podMonitor', ['ConfigMap', 'PrometheusRule']],
  ['alerts', ['ConfigMap', 'PodMonitor']],
])('without %s the rest remains', (part, kinds) => {
  const left = new Set(render(`${part}.enabled=false`).map(({ kind }) => kind));
  expect([...left].sort()).toEqual(kinds);
});
