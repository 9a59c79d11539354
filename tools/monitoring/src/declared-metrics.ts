import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { files, root } from '@unbounded/testing/tree';

/** The metrics that the code of apps and libraries declares, as it stands there. */

export interface DeclaredMetric {
  readonly file: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
}

/** metrics.counter({ name: '…', help: '…', labels: ['…'] }), also over several lines. */
const OPTIONS =
  /\bmetrics\s*\??\.(counter|gauge|histogram)(?:<\w+>)?\(\{\s*name: ['`](?<name>[^'`]+)['`],\s*help:\s*'(?<help>[^']*)'(?<rest>[^})]*)/g;
/** A file's own function for several metrics: const gauge = (name, help) => metrics.gauge({ name: `prefix_${name}`, help … }) */
const SHORT =
  /const (\w+) = (?:<[^>]*>)?\(\s*name: string,[^\n]*=>\s*metrics\.(\w+)\(\{ name: `(\w+)\$\{name\}`, help\b/g;
/** Each of these declares a metric, or is such a function. */
const CALL = /\bmetrics\s*\??\.(?:counter|gauge|histogram)\b[^(;]*\(/g;

const quoted = (text: string): string[] => [...text.matchAll(/'(\w+)'/g)].map(([, word]) => word!);

/** `labels: ['a', 'b']`, or a constant of the file of that name. */
const labelsIn = (rest: string, text: string): string[] => {
  const given = /\blabels(?:: \[([^\]]*)\])?/.exec(rest);
  if (!given) return [];
  return quoted(given[1] ?? /const labels = \[([^\]]*)\]/.exec(text)?.[1] ?? '');
};

export interface MetricsOfFile {
  readonly file: string;
  readonly metrics: readonly DeclaredMetric[];
  /** As many metrics as there are calls that make one. */
  readonly calls: number;
}

const metricsOf = (file: string): MetricsOfFile => {
  const text = readFileSync(join(root, file), 'utf8');
  const prefix = /const PREFIX = '(\w+)';/.exec(text)?.[1] ?? '';
  const direct = [...text.matchAll(OPTIONS)].map(({ 1: type, groups }) => ({
    ...{ file, type: type as DeclaredMetric['type'], help: groups!['help']! },
    name: groups!['name']!.replace('${PREFIX}', prefix),
    labels: labelsIn(groups!['rest']!, text),
  }));
  const functions = [...text.matchAll(SHORT)];
  const byFunction = functions.flatMap(([, called, type, begin]) =>
    [...text.matchAll(new RegExp(`\\b${called}\\(\\s*'(\\w+)',\\s*'([^']*)'(?:, \\[([^\\]]*)\\])?`, 'g'))].map(
      ([, name, help, labels]) => ({
        ...{ file, type: type as DeclaredMetric['type'], help: help! },
        ...{ name: `${begin}${name}`, labels: quoted(labels ?? '') },
      }),
    ),
  );
  return {
    file,
    metrics: [...direct, ...byFunction],
    calls: [...text.matchAll(CALL)].length - functions.length + byFunction.length,
  };
};

/** By file. */
export const declaredMetrics = (): readonly MetricsOfFile[] =>
  files('apps/*.ts', 'libs/*.ts')
    .filter((file) => !/\.(spec|scenario|testdata)\.ts$/.test(file) && !file.startsWith('libs/telemetry/'))
    .map(metricsOf);
