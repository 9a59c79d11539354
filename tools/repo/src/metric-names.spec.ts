import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { files, root } from './tree.ts';

/** Names and help of all metrics, by the rules of `promtool check metrics` and docs/glossary.md. */

interface Metric {
  readonly type: string;
  readonly name: string;
  readonly help: string;
}

/** metrics.counter({ name: '…', help: '…' }), also over several lines. */
const OPTIONS =
  /\bmetrics\??\.(counter|gauge|histogram)(?:<\w+>)?\(\{\s*name: ['`](?<name>[^'`]+)['`],\s*help:\s*'(?<help>[^']*)'/g;
/** A file's own function for several metrics: const gauge = (name, help) => metrics.gauge({ name: `prefix_${name}`, help … }) */
const SHORT =
  /const (\w+) = (?:<[^>]*>)?\(\s*name: string,[^\n]*=>\s*metrics\.(\w+)\(\{ name: `(\w+)\$\{name\}`, help\b/g;
/** Each of these declares a metric, or is such a function. */
const CALL = /\bmetrics\??\.(?:counter|gauge|histogram)\b[^(;]*\(/g;

const metricsOf = (file: string): { readonly metrics: readonly Metric[]; readonly calls: number } => {
  const text = readFileSync(join(root, file), 'utf8');
  const prefix = /const PREFIX = '(\w+)';/.exec(text)?.[1] ?? '';
  const direct = [...text.matchAll(OPTIONS)].map(({ 1: type, groups }) => ({
    type: type!,
    name: groups!['name']!.replace('${PREFIX}', prefix),
    help: groups!['help']!,
  }));
  const functions = [...text.matchAll(SHORT)];
  const byFunction = functions.flatMap(([, called, type, begin]) =>
    [...text.matchAll(new RegExp(`\\b${called}\\('(\\w+)',\\s*'([^']*)'`, 'g'))].map(([, name, help]) => ({
      type: type!,
      name: `${begin}${name}`,
      help: help!,
    })),
  );
  return {
    metrics: [...direct, ...byFunction],
    calls: [...text.matchAll(CALL)].length - functions.length + byFunction.length,
  };
};

const found = files('apps/*.ts', 'libs/*.ts')
  .filter((file) => !/\.(spec|scenario|testdata)\.ts$/.test(file) && !file.startsWith('libs/telemetry/'))
  .map((file) => ({ file, ...metricsOf(file) }));
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
