import { expect, test } from 'vitest';
import { declaredMetrics } from './declared-metrics.ts';
import { METRIC_ACTIONS } from './metric-actions.ts';

/** Names and help of all metrics, by the rules of `promtool check metrics` and docs/glossary.md. */

const found = declaredMetrics();
const metrics = found.flatMap((one) => one.metrics);

/** Names and help that operators know from client-go and controller-runtime. */
const OF_KUBERNETES = /^(workqueue|rest_client|controller_runtime|leader_election)_/;
const own = metrics.filter(({ name }) => !OF_KUBERNETES.test(name));

test('every metric is found', () => {
  expect(found.filter((one) => one.metrics.length !== one.calls).map(({ file }) => file)).toEqual([]);
  expect(own.length).toBeGreaterThan(50);
});

test('counters and nothing else end in _total', () => {
  expect(metrics.filter(({ type, name }) => (type === 'counter') !== name.endsWith('_total'))).toEqual([]);
});

test('names are snake case, with our prefix', () => {
  expect(own.filter(({ name }) => !/^unbounded(_[a-z0-9]+)+$/.test(name))).toEqual([]);
});

test('units are base units, and no name says its type', () => {
  const wrong =
    /_(ms|milliseconds|microseconds|minutes|hours|days|kib|mib|kilobytes|megabytes|percent|counter|gauge|histogram|count|sum|bucket)(_|$)/;
  expect(metrics.filter(({ name }) => wrong.test(name))).toEqual([]);
  expect(metrics.filter(({ type, name }) => type === 'histogram' && !/_(seconds|bytes)$/.test(name))).toEqual([]);
});

test('help is a sentence', () => {
  expect(metrics.filter(({ help }) => help === '')).toEqual([]);
  expect(own.filter(({ help }) => !/^[A-Z0-9].*\.$/.test(help))).toEqual([]);
});

test('what asks for an action is a metric that there is, by labels that it has', () => {
  for (const [name, { when, action }] of Object.entries(METRIC_ACTIONS)) {
    const labels = metrics.filter((metric) => metric.name === name).flatMap((metric) => metric.labels);
    expect(metrics.map((metric) => metric.name)).toContain(name);
    expect(when).toMatch(new RegExp(`\\b${name}\\b`));
    for (const [, label] of when.matchAll(/[{,](\w+)(?:=|!=|=~)"/g)) expect(labels, when).toContain(label);
    expect(action).toMatch(/^[A-Za-z0-9].*\.$/);
  }
});
