import { expect, test } from 'vitest';
import type { EgressPlan, PodRoute } from './egress-plan.ts';
import { changedSources, createStaleCheck } from './stale-connections.plan.ts';

const route = (owner: string | undefined, more: Partial<PodRoute> = {}): PodRoute => ({
  rule: 'StaticEgressIP/shop/web/0',
  destinations: ['0.0.0.0/0'],
  except: [],
  egress: owner === undefined ? [] : [{ address: '192.0.2.1', owner }],
  unavailable: 'drop',
  ...more,
});
const planOf = (...routes: readonly PodRoute[]): EgressPlan => ({
  node: 'n1',
  overlayAddresses: ['100.64.1.1'],
  mtuBytes: 1370,
  podCidrs: ['100.64.1.0/24'],
  overlayDevices: [],
  cluster: ['100.64.0.0/16', '10.0.0.7'],
  apiServices: ['10.96.0.1'],
  peers: [],
  steered: routes.length === 0 ? [] : [{ routes, pods: [{ uid: 'u1', node: 'n1', addresses: ['100.64.1.9'] }] }],
  translated: [],
  addresses: [{ address: '192.0.2.1', device: 'eth0' }],
});
/** From the pod to a destination, with the address that answers are sent to. */
const isStale = (
  plan: EgressPlan,
  answersTo: string,
  { to = '198.51.100.7', service = to }: { to?: string; service?: string } = {},
): boolean =>
  createStaleCheck(
    plan,
    new Set(['192.0.2.99']),
  )({
    original: { source: '100.64.1.9', destination: service },
    reply: { source: to, destination: answersTo },
  });
const [POD, NODE, EGRESS, FORMER] = ['100.64.1.9', '10.0.0.7', '192.0.2.1', '192.0.2.99'] as const;

test.each([
  ['to an owner elsewhere: the pod itself', planOf(route('n2')), [POD]],
  ['here: the egress address', planOf(route('n1')), [EGRESS]],
  ['of a rule that drops: none', planOf(route(undefined)), []],
  ['of a rule that lets pass: the node', planOf(route(undefined, { unavailable: 'pass' })), [NODE]],
  ['of no rule: the node', planOf(route('n2', { destinations: ['203.0.113.0/24'] })), [NODE]],
  ['of an exception: the node', planOf(route('n2', { except: ['198.51.100.0/24'] })), [NODE]],
  ['of a pod that no rule selects any more: the node', planOf(), [NODE]],
])('connections %s', (_, plan, kept) => {
  const sources = [POD, NODE, EGRESS, FORMER];
  expect(sources.filter((source) => !isStale(plan, source))).toEqual(kept);
});

test('connections in the cluster, by a Service too, and to the API server stay', () => {
  const plan = planOf(route('n2'));
  expect(isStale(plan, POD, { to: '100.64.2.9' })).toBe(false);
  expect(isStale(plan, NODE, { to: '100.64.2.9', service: '10.96.7.7' })).toBe(false);
  expect(isStale(plan, NODE, { to: '198.51.100.7', service: '10.96.0.1' })).toBe(false);
  expect(isStale(plan, NODE, { to: '198.51.100.7', service: '10.96.7.7' })).toBe(true);
});

test('looked at are pods whose routes are others than before, came or went', () => {
  const plan = planOf(route('n2'));
  expect(changedSources(undefined, plan)).toEqual([POD]);
  expect(changedSources(plan, plan)).toEqual([]);
  expect(changedSources(plan, planOf(route('n1')))).toEqual([POD]);
  expect(changedSources(plan, planOf())).toEqual([POD]);
});
