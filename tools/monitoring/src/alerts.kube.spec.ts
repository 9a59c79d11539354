import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { ALERT_CASES, type AlertCase, END, FAULT_BEGINS, FAULT_ENDS } from './alert-cases.testdata.ts';
import { alertRules, ALERTS } from './alerts.ts';
import { HEALTHY } from './healthy-series.testdata.ts';

/** The rules in Prometheus' own engine, with series as programs have them. */

const folder = mkdtempSync(join(tmpdir(), 'alerts-'));
afterAll(() => rmSync(folder, { recursive: true }));
const rules = join(folder, 'alerts.yaml');
writeFileSync(rules, alertRules());

const FIRING = 'ALERTS{alertstate="firing"}';

interface Expected {
  readonly atMinute: number;
  /** Selectors of ALERTS. */
  readonly firing: readonly string[];
}

const testOf = (series: Readonly<Record<string, string>>, expected: readonly Expected[]) => ({
  interval: '1m',
  input_series: Object.entries(series).map(([selector, values]) => ({ series: selector, values })),
  promql_expr_test: expected.map(({ atMinute, firing }) => ({
    expr: FIRING,
    eval_time: `${atMinute}m`,
    exp_samples: firing.map((labels) => ({ labels, value: 1 })),
  })),
});

/** What promtool prints, with SUCCESS where all is as expected. */
const promtool = (series: Readonly<Record<string, string>>, expected: readonly Expected[]): string => {
  const file = join(folder, 'test.yaml');
  writeFileSync(file, stringify({ rule_files: [rules], tests: [testOf(series, expected)] }));
  const { stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
  return `${stdout}${stderr}`;
};

const firingOf = ({ alert, labels }: AlertCase): string => {
  const { severity } = ALERTS.find(({ name }) => name === alert)!;
  const all = { alertname: alert, alertstate: 'firing', severity, ...labels };
  return `ALERTS{${Object.entries(all)
    .map(([label, value]) => `${label}="${value}"`)
    .join(',')}}`;
};

const faulty = ({ series, without }: AlertCase): Readonly<Record<string, string>> => ({
  ...Object.fromEntries(
    Object.entries(HEALTHY).filter(([selector]) => without === undefined || !selector.startsWith(without)),
  ),
  ...series,
});

const minutesOf = (duration: string): number => Number.parseInt(duration, 10) * (duration.endsWith('h') ? 60 : 1);

test('promtool takes the rules', () => {
  expect(execFileSync('promtool', ['check', 'rules', rules], { encoding: 'utf8' })).toContain(
    `SUCCESS: ${ALERTS.length} rules found`,
  );
});

test('every alert has a case', () => {
  expect(ALERTS.map(({ name }) => name).filter((name) => !ALERT_CASES.some(({ alert }) => alert === name))).toEqual([]);
});

test('nothing fires in a healthy network, neither at rest nor at a rolling update', () => {
  const minutes = Array.from({ length: END }, (_, minute) => ({ atMinute: minute, firing: [] }));
  expect(promtool(HEALTHY, minutes)).toContain('SUCCESS');
});

test.each(ALERT_CASES.map((one) => [firingOf(one), one] as const))(
  '%s fires by its fault and nothing else does, not before its time, and it clears',
  (firing, one) => {
    const waits = minutesOf(ALERTS.find(({ name }) => name === one.alert)!.for);
    const expected = [
      { atMinute: FAULT_BEGINS + waits - 1, firing: [] },
      { atMinute: FAULT_ENDS - 10, firing: [firing] },
      { atMinute: END, firing: [] },
    ];
    expect(promtool(faulty(one), expected)).toContain('SUCCESS');
  },
);

test('what is expected and does not fire is a failure', () => {
  expect(promtool(HEALTHY, [{ atMinute: 50, firing: [firingOf(ALERT_CASES[0]!)] }])).toContain('FAILED');
});
