import { parseAddress, parsePrefix } from '@unbounded/ip';
import { expect, test } from 'vitest';
import { planEgress } from '../index.ts';
import { node, pod, snapshot, staticEgress } from '../testdata.ts';

const nodes = [1, 2, 3].map((number) => node(number, { podBlocks: [parsePrefix(`10.244.${number}.0/24`)] }));
const rules = [staticEgress([{ podSelector: {}, egressip: '192.0.2.210' }])];
const victim = pod(1, { node: 'n1', addresses: [parseAddress('10.244.1.7')] });
const planOf = (...pods: ReturnType<typeof pod>[]) => planEgress(snapshot({ nodes, rules, pods }));
const sourcesOf = ({ slices }: ReturnType<typeof planOf>) =>
  [...slices.values()].flatMap(({ sources = [] }) => sources.map(({ uid, addresses }) => [uid, ...addresses]));

test('a pod has no address of the pods of another node: its owner sends no answers of that pod to it', () => {
  const liar = pod(8, { node: 'n3', addresses: ['10.244.1.7', '10.244.3.8'].map(parseAddress) });
  const plan = planOf(victim, liar);
  expect(sourcesOf(plan)).toEqual([
    ['uid-p1', '10.244.1.7'],
    ['uid-p8', '10.244.3.8'],
  ]);
  expect(plan.slices.get('n3-0')!.pods).toMatchObject([{ uid: 'uid-p8', addresses: ['10.244.3.8'] }]);
  const covered = plan.ruleStatuses
    .get('StaticEgressIP/shop/partner')!
    .conditions.find(({ type }) => type === 'PodsCovered');
  expect(covered).toMatchObject({
    status: 'False',
    reason: 'ForeignPodAddress',
    message:
      'spec.rules[0] "shop/p8": status.podIPs has addresses that are not of the pods of their node (10.244.1.7 of p8 on n3), and that are not used: check that spec.podCIDRs of the Node holds them, and who writes the status',
  });
});

test.each([
  ['the same block', ['10.244.1.0/24']],
  ['a wider block', ['10.244.0.0/16', '10.244.3.0/24']],
  ['a part of the block', ['10.244.1.0/28', '10.244.3.0/24']],
])('a younger Node that states %s has none of the older one’s pods', (_, blocks) => {
  const [older, , stranger] = nodes.map((one, at) => ({ ...one, createdMs: at * 1000 }));
  const liar = { ...stranger!, podBlocks: blocks.map(parsePrefix) };
  const pods = [victim, pod(8, { node: 'n3', addresses: ['10.244.1.7', '10.244.3.8'].map(parseAddress) })];
  const own = ['uid-p8', ...(blocks.length > 1 ? ['10.244.3.8'] : [])];
  for (const all of [
    [older!, liar],
    [liar, older!],
  ])
    expect(sourcesOf(planEgress(snapshot({ nodes: all, rules, pods })))).toEqual([['uid-p1', '10.244.1.7'], own]);
});

test('an older Node keeps its block beside a wider one of a younger Node, which keeps the rest', () => {
  const [n1, n2] = nodes.map((one, at) => ({ ...one, createdMs: 1000 - at }));
  const wide = { ...n1!, podBlocks: [parsePrefix('10.244.0.0/16')] };
  const pods = [
    pod(1, { node: 'n1', addresses: ['10.244.2.7', '10.244.9.7'].map(parseAddress) }),
    pod(2, { node: 'n2', addresses: [parseAddress('10.244.2.8')] }),
  ];
  expect(sourcesOf(planEgress(snapshot({ nodes: [wide, n2!], rules, pods })))).toEqual([
    ['uid-p1', '10.244.9.7'],
    ['uid-p2', '10.244.2.8'],
  ]);
});

test('of two pods of a node that state one address neither is a source with it: one of them has ended, and its status does not say so yet', () => {
  const [address, own] = ['10.244.1.7', 'fd00::8'].map(parseAddress);
  const dual = nodes.map((one) => ({ ...one, podBlocks: [...one.podBlocks, parsePrefix('fd00::/64')] }));
  const next = pod(2, { node: 'n1', addresses: [address!, own!] });
  const plan = planEgress(snapshot({ nodes: [dual[0]!, ...nodes.slice(1)], rules, pods: [victim, next] }));
  expect(sourcesOf(plan)).toEqual([['uid-p1'], ['uid-p2', 'fd00::8']]);
  expect(sourcesOf(planOf({ ...victim, isFinished: true }, pod(2, { node: 'n1', addresses: [address!] })))).toEqual([
    ['uid-p2', '10.244.1.7'],
  ]);
});

test('a pod with the network of its node has its addresses, and is no source', () => {
  const onHost = pod(8, { node: 'n3', isHostNetwork: true, addresses: [parseAddress('192.0.2.3')] });
  const plan = planOf(victim, onHost);
  expect(sourcesOf(plan)).toEqual([['uid-p1', '10.244.1.7']]);
  expect(plan.ruleStatuses.get('StaticEgressIP/shop/partner')!.conditions).toContainEqual(
    expect.objectContaining({ type: 'PodsCovered', reason: 'HostNetwork' }),
  );
});

test('a pod of a node without blocks waits for them, and leaves with no other address meanwhile', () => {
  const plan = planEgress(snapshot({ rules, nodes: [node(1, { podBlocks: [] }), ...nodes.slice(1)], pods: [victim] }));
  expect(plan.slices.get('n1-0')!.pods).toMatchObject([{ uid: 'uid-p1', addresses: [], routes: [0] }]);
});
