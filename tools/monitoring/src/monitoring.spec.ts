import { readdirSync, readFileSync } from 'node:fs';
import { METRIC_ACTIONS } from './metric-actions.ts';
import { describe, expect, test } from 'vitest';
import { ALERTS } from './alerts.ts';
import { type Panel, panelsOf } from './dashboard.ts';
import { DASHBOARDS } from './dashboards.ts';
import { declaredSeries } from './declared-series.ts';
import { monitoringFiles } from './files.ts';
import { checkPromql } from './promql-check.ts';

const root = new URL('../../../', import.meta.url);
const troubleshooting = readFileSync(new URL('docs/troubleshooting.md', root), 'utf8');
/** By the heading. */
const sections = new Map(
  troubleshooting.split(/^#+ /m).map((section) => [section.slice(0, section.indexOf('\n')), section] as const),
);

/** Every expression against the metrics that the code declares: after a rename this fails, and not a panel. */

const series = declaredSeries();
const check = (text: string) => checkPromql(text, { series });

const panels = DASHBOARDS.flatMap(({ uid, rows }) =>
  rows.flatMap((row) => row.panels.map((panel) => [`${uid}: ${panel.title}`, panel] as const)),
);

describe.each(ALERTS.map((alert) => [alert.name, alert] as const))('%s', (_, alert) => {
  test('asks for metrics and labels that there are', () => {
    expect(check(alert.expr).metrics.length).toBeGreaterThan(0);
  });

  test('names labels that its result has', () => {
    const { labels } = check(alert.expr);
    const named = [...`${alert.summary} ${alert.description}`.matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label);
    expect(named.filter((label) => !labels.has(label!))).toEqual([]);
  });

  test('has a section in docs/troubleshooting.md', () => {
    const parts = [...(sections.get(alert.name) ?? '').matchAll(/^- \*\*(.+)\*\*: ./gm)].map(([, part]) => part);
    expect(parts).toEqual(['Seen', 'Cause', 'Look at', 'Do']);
  });

  test('is told in sentences', () => {
    for (const text of [alert.summary, alert.description]) expect(text).toMatch(/^[A-Z{0-9].*\.$/);
  });
});

describe.each(panels)('%s', (_, { queries, description, unit }: Panel) => {
  test.each(queries)('$expr has a result with the labels of its legend', ({ expr, legend }) => {
    const { labels } = check(expr);
    expect([...legend.matchAll(/\{\{(\w+)\}\}/g)].filter(([, label]) => !labels.has(label!))).toEqual([]);
    expect([...labels].filter((label) => !legend.includes(`{{${label}}}`))).toEqual([]);
  });

  test('has as many lines in a cluster of 500 nodes as can be read', () => {
    const manifold = ['node', 'pod', 'instance', 'address', 'rule', 'endpoint', 'site', 'pool'];
    const long = queries.filter(
      ({ expr }) => !/^(topk|bottomk)\(/.test(expr) && manifold.some((label) => check(expr).labels.has(label)),
    );
    expect(long).toEqual([]);
  });

  test('says what it means, and in what unit', () => {
    expect(description).toMatch(/^\S.{20,}\.$/);
    expect(unit).not.toBe('');
  });
});

test.each(DASHBOARDS.map((board) => [board.uid, board] as const))(
  '%s has 8 to 24 panels and variables that have values',
  (_, board) => {
    const all = panelsOf(board);
    expect(all.length).toBeGreaterThanOrEqual(8);
    expect(all.length).toBeLessThanOrEqual(24);
    for (const { title } of board.rows) expect(title).toMatch(/\?$/);
    for (const { series: selector, valuesOf } of board.variables)
      expect([...check(selector).labels], selector).toContain(valuesOf);
    const used = JSON.stringify(board.rows).matchAll(/\$(\w+)/g);
    const known = new Set(['__rate_interval', ...board.variables.map(({ name }) => name)]);
    expect([...used].filter(([, name]) => !known.has(name!))).toEqual([]);
  },
);

test.each(Object.entries(METRIC_ACTIONS))('the state of %s that asks for an action can be', (_, { when }) => {
  expect(checkPromql(when, { series, needsJob: false }).metrics.length).toBeGreaterThan(0);
});

test('names of alerts and dashboards are not given twice, and the same files come out each time', () => {
  expect(new Set(ALERTS.map(({ name }) => name)).size).toBe(ALERTS.length);
  expect(new Set(DASHBOARDS.map(({ uid }) => uid)).size).toBe(DASHBOARDS.length);
  expect(monitoringFiles()).toEqual(monitoringFiles());
});

test('no section of docs/troubleshooting.md, no file of the chart is of an alert or dashboard that was', () => {
  const names = ALERTS.map(({ name }) => name as string);
  expect([...sections.keys()].filter((title) => title.startsWith('Unbounded') && !names.includes(title))).toEqual([]);
  const links = [...troubleshooting.matchAll(/\]\(#(unbounded\w+)\)/g)].map(([, anchor]) => anchor!);
  expect(links.filter((anchor) => !names.some((name) => name.toLowerCase() === anchor))).toEqual([]);
  const folder = new URL('deploy/chart/charts/monitoring/files/', root);
  const written = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => /\.\w+$/.test(file));
  expect(written.sort()).toEqual([...monitoringFiles().keys()].sort());
});

test('panels lie beside and below one another', () => {
  interface Placed {
    readonly id: number;
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  }
  for (const [file, text] of monitoringFiles()) {
    if (!file.endsWith('.json')) continue;
    const placed = (JSON.parse(text) as { panels: Placed[] }).panels;
    const cells = placed.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)} ${y + Math.floor(cell / w)}`),
    );
    expect(new Set(cells).size, file).toBe(cells.length);
    expect(new Set(placed.map(({ id }) => id)).size, file).toBe(placed.length);
  }
});
