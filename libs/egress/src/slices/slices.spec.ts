import { MAX_EGRESS_POD_ROUTES, type StaticEgressRule } from '@unbounded/crds';
import { expect, test } from 'vitest';
import { planEgress } from '../plan.ts';
import type { EgressSnapshot } from '../snapshot.ts';
import {
  egressPool,
  node,
  pod,
  reportingSlice,
  snapshot,
  staticEgress,
  withConfirmations,
  written,
} from '../testdata.ts';
import { planSliceChanges } from './changes.plan.ts';
import { routeTable } from './route-table.ts';
import { sliceName } from './slice-name.ts';

const step = (given: EgressSnapshot): EgressSnapshot => withConfirmations(written(given, planEgress(given)));
const changesOf = (given: EgressSnapshot) => planSliceChanges(given.slices, planEgress(given).slices);
const rules = [staticEgress([{ 'service-name': 'web', pool: 'public' }])];
const pools = [egressPool({ blocks: ['192.0.2.96/28'], nodeSelector: { matchLabels: { egress: 'yes' } } })];
/** Pods on n1 and n2; n3 alone can own. */
const nodes = [node(1), node(2), node(3, { labels: { egress: 'yes' } })];
const podsOf = (count: number) =>
  Array.from({ length: count }, (_, index) => pod(index, { node: index % 2 === 0 ? 'n1' : 'n2' }));
const slices = nodes.map((one) => reportingSlice(one));

test('1200 pods on two nodes: two slices each, three at the owner, at most 500 pods in each', () => {
  const given = step(step(snapshot({ nodes, slices, rules, pools, pods: podsOf(1200) })));
  const sizes = given.slices.map(({ metadata, spec }) => [
    metadata.name,
    (spec.pods ?? []).length,
    (spec.sources ?? []).length,
  ]);
  expect(sizes).toEqual([
    ['n1-0', 500, 0],
    ['n1-1', 100, 0],
    ['n2-0', 500, 0],
    ['n2-1', 100, 0],
    ['n3-0', 0, 500],
    ['n3-1', 0, 500],
    ['n3-2', 0, 200],
  ]);
});

test('a pod that comes or goes touches one slice of its node and one of the owner', () => {
  const given = step(step(snapshot({ nodes, slices, rules, pools, pods: podsOf(1200) })));
  const gone = { ...given, pods: given.pods.filter(({ name }) => name !== 'p7') };
  expect(changesOf(gone)).toHaveLength(2);
  const more = { ...given, pods: [...given.pods, pod(4000, { node: 'n1' })] };
  expect(changesOf(more)).toHaveLength(2);
});

test('without rules there are no slices', () => {
  expect(planEgress(snapshot()).slices.size).toBe(0);
});

test('a pod with more rules than fit is dropped where a further rule would count', () => {
  const many = Array.from({ length: MAX_EGRESS_POD_ROUTES + 6 }, (_, index): StaticEgressRule => ({
    podSelector: {},
    egressip: '192.0.2.200',
    cidr: `198.51.${index}.0/24`,
  }));
  const given = snapshot({
    rules: [0, 1, 2].map((part) => staticEgress(many.slice(part * 30, part * 30 + 30), { name: `r${part}` })),
  });
  const plan = planEgress(given);
  const routes = plan.routedPods.get('uid-p1')!.routes;
  expect(routes).toHaveLength(MAX_EGRESS_POD_ROUTES);
  expect(routes.at(-1)!.route).toEqual({
    rule: 'none: too many rules',
    destinations: ['0.0.0.0/0', '::/0'],
    whenUnavailable: 'Drop',
  });
  const covered = plan.ruleStatuses
    .get('StaticEgressIP/shop/r2')!
    .conditions.find(({ type }) => type === 'PodsCovered')!;
  expect(covered).toMatchObject({ status: 'False', reason: 'TooManyRules' });
});

test('routes that do not fit into a table drop', () => {
  const route = (key: string) => ({
    key,
    route: { rule: key, destinations: ['::/0'], whenUnavailable: 'Node' as const },
  });
  const all = ['a', 'b', 'c'].map(route);
  const { routes, placesOf } = routeTable(all, 2);
  expect(routes.map(({ rule }) => rule)).toEqual(['none: too many rules', 'a']);
  expect(placesOf(all)).toEqual([1, 0]);
});

test('names of slices are unique and fit, however long the name of the node', () => {
  const long = 'n'.repeat(253);
  expect(sliceName('n1', 3)).toBe('n1-3');
  expect(sliceName(long, 9999).length).toBeLessThanOrEqual(253);
  expect(sliceName(long, 0)).not.toBe(sliceName(`${long.slice(1)}m`, 0));
});
