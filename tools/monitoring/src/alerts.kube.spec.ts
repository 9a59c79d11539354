import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { COMMAND_MEMORY } from '@unbounded/testing/go-memory';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { Alert } from './alert.ts';
import { ALERT_CASES, type AlertCase } from './alert-cases.testdata.ts';
import { alertRules, ALERTS } from './alerts.ts';
import { type Course, courseOf, minutesOf } from './fault-course.testdata.ts';
import { HEALTHY } from './healthy-series.testdata.ts';

/** The rules in Prometheus' own engine, with series as programs have them. */

const folder = mkdtempSync(join(tmpdir(), 'alerts-'));
afterAll(() => rmSync(folder, { recursive: true }));
const rules = join(folder, 'alerts.yaml');
writeFileSync(rules, alertRules());

/** The rolling update and what comes of it. */
const HEALTHY_MINUTES = 155;
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
const promtool = (tests: readonly ReturnType<typeof testOf>[]): string => {
  const file = join(folder, 'test.yaml');
  writeFileSync(file, stringify({ rule_files: [rules], tests }));
  const env = { ...process.env, ...COMMAND_MEMORY };
  const { stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8', env });
  return `${stdout}${stderr}`;
};

const alertOf = (one: AlertCase): Alert => ALERTS.find(({ name }) => name === one.alert)!;
const firingOf = (one: AlertCase): string => {
  const { alert, labels } = one;
  const { severity } = alertOf(one);
  const all = { alertname: alert, alertstate: 'firing', severity, ...labels };
  return `ALERTS{${Object.entries(all)
    .map(([label, value]) => `${label}="${value}"`)
    .join(',')}}`;
};

const faulty = ({ series, without }: AlertCase, course: Course): Readonly<Record<string, string>> => ({
  ...Object.fromEntries(
    Object.entries(HEALTHY).filter(([selector]) => without === undefined || !selector.startsWith(without)),
  ),
  ...Object.fromEntries(Object.entries(series).map(([selector, samples]) => [selector, samples(course)])),
});

test('promtool takes the rules', () => {
  expect(execFileSync('promtool', ['check', 'rules', rules], { encoding: 'utf8' })).toContain(
    `SUCCESS: ${ALERTS.length} rules found`,
  );
});

test('every alert has a case', () => {
  expect(ALERTS.map(({ name }) => name).filter((name) => !ALERT_CASES.some(({ alert }) => alert === name))).toEqual([]);
});

test('nothing fires in a healthy network, neither at rest nor at a rolling update', () => {
  const minutes = Array.from({ length: HEALTHY_MINUTES }, (_, minute) => ({ atMinute: minute, firing: [] }));
  expect(promtool([testOf(HEALTHY, minutes)])).toContain('SUCCESS');
});

describe('by a fault', () => {
  const caseOf = (one: AlertCase) => {
    const alert = alertOf(one);
    const course = courseOf(alert);
    return testOf(faulty(one, course), [
      { atMinute: course.begins + minutesOf(alert.for) - 1, firing: [] },
      { atMinute: course.ends - 1, firing: [firingOf(one)] },
      { atMinute: course.end, firing: [] },
    ]);
  };
  /** Of all cases by one start; it does not say which of them fails, so that each is asked for alone then. */
  let together = '';
  beforeAll(() => void (together = promtool(ALERT_CASES.map(caseOf))));

  test.each(ALERT_CASES.map((one) => [firingOf(one), one] as const))(
    '%s fires and nothing else does, not before its time, and it clears',
    (_, one) => {
      expect(together.includes('SUCCESS') ? together : promtool([caseOf(one)])).toContain('SUCCESS');
    },
  );
});

test('what is expected and does not fire is a failure', () => {
  const wrong = testOf(HEALTHY, [{ atMinute: 20, firing: [firingOf(ALERT_CASES[0]!)] }]);
  const right = testOf(HEALTHY, [{ atMinute: 20, firing: [] }]);
  for (const tests of [[wrong], [right, wrong, right]]) {
    const printed = promtool(tests);
    expect(printed).toContain('FAILED');
    expect(printed).not.toContain('SUCCESS');
  }
});
