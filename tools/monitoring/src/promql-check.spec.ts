import { expect, test } from 'vitest';
import type { Series } from './declared-series.ts';
import { checkPromql } from './promql-check.ts';

const series = new Map<string, Series>([
  ['unbounded_drops_total', { type: 'counter', labels: ['reason'] }],
  ['unbounded_peers', { type: 'gauge', labels: ['state'] }],
  ['unbounded_wait_seconds_bucket', { type: 'counter', labels: ['le'] }],
  ['up', { type: 'gauge', labels: [] }],
]);
const labelsOf = (text: string): string[] => [...checkPromql(text, { series }).labels].sort();

test.each([
  ['sum by (node, reason) (rate(unbounded_drops_total{reason!="x"}[$__rate_interval])) > 1', ['node', 'reason']],
  ['topk(5, max by (state) (unbounded_peers))', ['state']],
  ['sum(unbounded_peers) by (pod)', ['pod']],
  ['absent(up{job="a"})', ['job']],
  ['histogram_quantile(0.9, sum by (le, pod) (rate(unbounded_wait_seconds_bucket[5m])))', ['pod']],
  ['count(sum by (node) (unbounded_peers) > 6)', []],
  ['time() - max by (node) (unbounded_peers)', ['node']],
  ['max by (node) (unbounded_peers) / on (node) max by (node, state) (unbounded_peers)', ['node']],
  ['max by (node) (unbounded_peers) or max by (state) (unbounded_peers)', ['node', 'state']],
  ['max by (node) (max_over_time(unbounded_peers{node=~"$node"}[1h] offset 1h))', ['node']],
])('%s is right', (text, labels) => {
  expect(labelsOf(text)).toEqual(labels);
});

test.each([
  ['unbounded_renamed > 0', 'unbounded_renamed must be a metric that our code declares'],
  ['unbounded_peers{kind="x"}', 'unbounded_peers has no label "kind": it must be one of state, namespace'],
  ['sum by (reason) (unbounded_peers)', 'no label "reason" to group by in "(unbounded_peers)"'],
  ['count by (state) (sum by (node) (unbounded_peers))', 'no label "state" to group by'],
  ['sum(unbounded_peers) / on (reason) sum(unbounded_peers)', 'no label "reason" to group by'],
  ['unbounded_drops_total > 0', 'unbounded_drops_total is a counter: it must be the argument of rate'],
  ['sum(unbounded_drops_total)', 'unbounded_drops_total is a counter'],
  ['max_over_time(unbounded_drops_total[1h])', 'unbounded_drops_total is a counter'],
  ['rate(unbounded_peers[5m])', 'unbounded_peers is a gauge: rate() must have a counter'],
  ['unbounded_wait_seconds', 'unbounded_wait_seconds must be a metric'],
  ['histogram_quantile(0.9, sum by (pod) (rate(unbounded_wait_seconds_bucket[5m])))', 'must have the label "le"'],
  ['up == 0', 'up is not ours alone: its selector must have the label job'],
  ['{__name__=~"unbounded_.*"}', "must begin with a metric's name"],
  ['sum(unbounded_peers', '"sum(unbounded_peers" must be PromQL: not understood from character 19'],
  ['', '"" must be PromQL'],
])('%s is refused', (text, message) => {
  expect(() => checkPromql(text, { series })).toThrow(message);
});
