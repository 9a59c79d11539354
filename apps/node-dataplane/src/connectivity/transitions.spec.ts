import { AddressSet, parsePrefix } from '@unbounded/ip';
import { findMember, type NodePlan, parseWorld, planNode } from '@unbounded/topology';
import { cluster } from '@unbounded/topology/testdata';
import { expect, test } from 'vitest';
import { createTransitions, type Transitions } from './transitions.ts';

type Protocol = 'VXLAN' | 'GENEVE' | 'None';

const WORKERS = 14;
const planWith = (protocol: Protocol): NodePlan => {
  const world = parseWorld(cluster({ sites: 2, gateways: 1, workers: WORKERS, protocol }));
  return planNode(world, { member: findMember(world, 's1-w1')!, underlayMtuBytes: 1500 });
};
const PLANS = { VXLAN: planWith('VXLAN'), GENEVE: planWith('GENEVE'), None: planWith('None') };
const nodeOf = (prefix: string): string | undefined => {
  const to = PLANS.VXLAN.blocks.find((block) => block.prefix === prefix)?.to;
  return typeof to === 'object' && 'nextHop' in to ? to.nextHop.node : undefined;
};
/** Blocks of single nodes. */
const BLOCKS = PLANS.VXLAN.blocks.flatMap(({ prefix }) => (nodeOf(prefix) === undefined ? [] : [prefix]));
const [NEAR, OTHER] = BLOCKS as [string, string];

/** VXLAN to all nodes but those of these blocks. */
const planOf = (ways: Readonly<Record<string, Protocol>>): NodePlan => {
  const protocols = new Map(Object.entries(ways).map(([prefix, protocol]) => [nodeOf(prefix), protocol]));
  const planFor = (node: string | undefined): NodePlan => PLANS[protocols.get(node) ?? 'VXLAN'];
  return {
    ...PLANS.VXLAN,
    blocks: PLANS.VXLAN.blocks.map(({ prefix }) =>
      planFor(nodeOf(prefix)).blocks.find((block) => block.prefix === prefix)!,
    ),
    tunnels: Object.values(PLANS).flatMap((plan) => plan.tunnels.filter(({ node }) => planFor(node) === plan)),
  };
};

const open = (): Transitions & { pass(ms: number): void } => {
  let nowMs = 0;
  const transitions = createTransitions(() => nowMs);
  transitions.to(planOf({}));
  return { ...transitions, pass: (ms) => void (nowMs += ms) };
};

const sentBy = (plan: NodePlan | undefined, prefix: string): string => {
  const to = plan?.blocks.find((block) => block.prefix === prefix)?.to;
  if (typeof to !== 'object' || 'group' in to) return 'nothing';
  return 'gateways' in to ? 'None' : to.nextHop.protocol;
};
const takenBy = (plan: NodePlan | undefined, prefix: string): string[] => {
  const isPlain = AddressSet.of((plan?.alsoPlain ?? []).map(parsePrefix)).overlaps(parsePrefix(prefix));
  const tunnels = (plan?.tunnels ?? []).filter(({ node }) => node === nodeOf(prefix));
  return [...new Set(tunnels.map(({ protocol }) => protocol)), ...(isPlain ? ['None'] : [])].sort();
};

test('a change that begins while another one is at its second step does not end that', () => {
  const steps = open();
  steps.to(planOf({ [NEAR]: 'None' }));
  steps.pass(24_000);
  steps.to(planOf({}));
  steps.pass(5000);
  steps.to(planOf({ [OTHER]: 'GENEVE' }));
  expect([sentBy(steps.effective(), NEAR), takenBy(steps.effective(), NEAR)]).toEqual(['VXLAN', ['None', 'VXLAN']]);
  expect([sentBy(steps.effective(), OTHER), takenBy(steps.effective(), OTHER)]).toEqual(['VXLAN', ['GENEVE', 'VXLAN']]);
  expect(steps.nextStepMs()).toBe(4000);
  steps.pass(4000);
  expect([sentBy(steps.effective(), NEAR), takenBy(steps.effective(), NEAR)]).toEqual(['VXLAN', ['None', 'VXLAN']]);
  expect([sentBy(steps.effective(), OTHER), takenBy(steps.effective(), OTHER)]).toEqual([
    'GENEVE',
    ['GENEVE', 'VXLAN'],
  ]);
});

test('nor does it make that last longer', () => {
  const steps = open();
  steps.to(planOf({ [NEAR]: 'GENEVE' }));
  steps.pass(5000);
  steps.to(planOf({ [NEAR]: 'GENEVE', [OTHER]: 'None' }));
  steps.pass(19_000);
  expect(takenBy(steps.effective(), NEAR)).toEqual(['GENEVE']);
  expect([sentBy(steps.effective(), OTHER), takenBy(steps.effective(), OTHER)]).toEqual(['None', ['None', 'VXLAN']]);
  expect(steps.nextStepMs()).toBe(5000);
  steps.pass(5000);
  expect(steps.nextStepMs()).toBeUndefined();
  expect(steps.effective()).toEqual(planOf({ [NEAR]: 'GENEVE', [OTHER]: 'None' }));
});

test('a change that begins while another one is at its first step does not delay that', () => {
  const steps = open();
  steps.to(planOf({ [NEAR]: 'GENEVE' }));
  steps.pass(3000);
  steps.to(planOf({ [NEAR]: 'GENEVE', [OTHER]: 'GENEVE' }));
  expect(steps.nextStepMs()).toBe(1000);
  steps.pass(1000);
  expect([NEAR, OTHER].map((prefix) => sentBy(steps.effective(), prefix))).toEqual(['GENEVE', 'VXLAN']);
  expect(steps.nextStepMs()).toBe(3000);
  steps.pass(3000);
  expect([NEAR, OTHER].map((prefix) => sentBy(steps.effective(), prefix))).toEqual(['GENEVE', 'GENEVE']);
});

test('a block that changes again amid its steps takes packets by all three ways, and each as long as its own change lasts', () => {
  const steps = open();
  steps.to(planOf({ [NEAR]: 'None' }));
  steps.pass(5000);
  steps.to(planOf({ [NEAR]: 'GENEVE' }));
  expect([sentBy(steps.effective(), NEAR), takenBy(steps.effective(), NEAR)]).toEqual([
    'None',
    ['GENEVE', 'None', 'VXLAN'],
  ]);
  steps.pass(4000);
  expect([sentBy(steps.effective(), NEAR), takenBy(steps.effective(), NEAR)]).toEqual([
    'GENEVE',
    ['GENEVE', 'None', 'VXLAN'],
  ]);
  steps.pass(15_000);
  expect(takenBy(steps.effective(), NEAR)).toEqual(['GENEVE', 'None']);
  steps.pass(5000);
  expect(takenBy(steps.effective(), NEAR)).toEqual(['GENEVE']);
});

test('of more changes than are kept apart each goes all its steps', () => {
  const steps = open();
  const blocks = BLOCKS.slice(0, 12);
  let ways: Record<string, Protocol> = {};
  for (const prefix of blocks) {
    ways = { ...ways, [prefix]: 'GENEVE' };
    steps.to(planOf(ways));
    steps.pass(100);
  }
  const [sent, taken] = [
    () => blocks.map((prefix) => sentBy(steps.effective(), prefix)),
    () => blocks.map((prefix) => takenBy(steps.effective(), prefix)),
  ];
  expect(new Set(sent())).toEqual(new Set(['VXLAN']));
  steps.pass(4000);
  expect(new Set(sent())).toEqual(new Set(['GENEVE']));
  steps.pass(18_000);
  expect(taken()).toEqual(blocks.map(() => ['GENEVE', 'VXLAN']));
  steps.pass(2000);
  expect(steps.effective()).toEqual(planOf(ways));
});

test('the plan of a step is made once', () => {
  const steps = open();
  steps.to(planOf({ [NEAR]: 'GENEVE' }));
  const first = steps.effective();
  steps.pass(1000);
  expect(steps.effective()).toBe(first);
  steps.to(planOf({ [NEAR]: 'GENEVE' }));
  expect(steps.effective()).not.toBe(first);
});
