import { expect, test } from 'vitest';
import { EXAMPLE_RULE } from '../../features/partner/example.ts';
import { FEATURES } from '../../features/features.ts';
import { layoutOf } from '../../layout/layout.ts';
import { egressSlicesOf } from './egress-slices.ts';

const layout = layoutOf({ fabric: true, partner: true, ip: 'dual', workers: 1 });
const pod = (name: string, node: string, ...ips: string[]) => ({ name, node, site: 's1', ips, ip: ips[0]! });
const PODS = [
  pod('probe-a-s1-w1', 's1-w1', '100.65.1.2', 'fd64:1:0:1::2'),
  pod('probe-b-s1-w1', 's1-w1', '100.65.1.3', 'fd64:1:0:1::3'),
  pod('probe-a-s2-w1', 's2-w1', '100.66.1.2', 'fd64:2:0:1::2'),
];
const applied = FEATURES.flatMap(({ manifests, examples }) => [...manifests(layout), ...examples(layout)]) as {
  kind: string;
}[];

test('the first gateway owns an address of each family, for the selected pods of all nodes', () => {
  const slices = egressSlicesOf(layout, applied, PODS);
  const owned = slices.flatMap(({ spec }) => (spec.owned ?? []).map(({ address }) => [spec.nodeName, address]));
  expect(owned.map(([node, address]) => `${node} ${address}`).toSorted()).toEqual([
    's1-g1 2001:db8:203::200',
    's1-g1 203.0.113.200',
  ]);
  const owner = slices.find(({ spec }) => spec.nodeName === 's1-g1')!;
  expect(owner.spec.sources?.map(({ uid }) => uid).toSorted()).toEqual(['probe-a-s1-w1', 'probe-a-s2-w1']);
});

test('a node steers its selected pods, and no others', () => {
  const steered = egressSlicesOf(layout, applied, PODS).flatMap(({ spec }) =>
    (spec.pods ?? []).map(({ name, addresses }) => [spec.nodeName, name, ...addresses]),
  );
  expect(steered).toEqual([
    ['s1-w1', 'probe-a-s1-w1', '100.65.1.2', 'fd64:1:0:1::2'],
    ['s2-w1', 'probe-a-s2-w1', '100.66.1.2', 'fd64:2:0:1::2'],
  ]);
});

test('without a rule there are no slices', () => {
  const others = applied.filter(({ kind }) => kind !== EXAMPLE_RULE.kind);
  expect(egressSlicesOf(layout, others, PODS)).toEqual([]);
});
