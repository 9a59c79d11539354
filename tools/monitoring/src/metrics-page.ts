import { declaredMetrics, type DeclaredMetric } from './declared-metrics.ts';
import { METRIC_ACTIONS } from './metric-actions.ts';

/** The tables of docs/metrics.md. */

/** A program, and the part of the tree whose metrics it has; those of libraries are of all programs that use them. */
const PARTS: readonly (readonly [string, RegExp])[] = [
  ['Every program', /^libs\/host\//],
  ['Programs that talk to the API server', /^libs\/(?:kube|controller-runtime)\//],
  ['node-dataplane', /^apps\/node-dataplane\//],
  ['site-membership', /^apps\/site-membership\//],
  ['cidr-allocator', /^apps\/cidr-allocator\//],
  ['gateway-health', /^apps\/gateway-health\//],
  ['static-egress', /^apps\/static-egress\//],
  ['l2-networks', /^apps\/l2-networks\//],
  ['relay', /^apps\/relay\//],
  ['status-aggregator', /^apps\/status-aggregator\//],
  ['tailnet-registrar', /^apps\/tailnet-registrar\//],
  ['tailnet', /^apps\/tailnet\//],
];

/** In a cell of a table. */
const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '\\<');
const row = ({ name, type, labels, help }: DeclaredMetric): string => {
  const by = labels.length === 0 ? '' : ` by ${labels.map((label) => `\`${label}\``).join(', ')}`;
  return `| \`${name}\` | ${type}${by} | ${cell(help.replace(/\.?$/, '.'))} |`;
};

const actionsOf = (metrics: readonly DeclaredMetric[]): string[] => {
  const lines = metrics.flatMap(({ name }) => {
    const found = METRIC_ACTIONS[name];
    return found ? [`| \`${found.when.replaceAll('|', '\\|')}\` | ${found.action} |`] : [];
  });
  return lines.length === 0 ? [] : ['', '| when | then |', '|---|---|', ...lines];
};

const section = (title: string, metrics: readonly DeclaredMetric[]): string =>
  [
    ...[`### ${title}`, '', '| metric | type | meaning |', '|---|---|---|', ...metrics.map(row)],
    ...actionsOf(metrics),
  ].join('\n');

/** @throws Error when a file is of no part */
export const metricTables = (): string => {
  const all = declaredMetrics().flatMap(({ metrics }) => metrics);
  const lost = all.find(({ file }) => !PARTS.some(([, folder]) => folder.test(file)));
  if (lost) throw new Error(`${lost.file} has metrics and is of no program in metrics-page.ts`);
  return PARTS.map(([title, folder]) =>
    section(
      title,
      all.filter(({ file }) => folder.test(file)),
    ),
  ).join('\n\n');
};
