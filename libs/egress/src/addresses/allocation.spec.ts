import type { StaticEgressIP, StaticEgressRule } from '@unbounded/crds';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { planEgress } from '../plan.ts';
import type { EgressSnapshot } from '../snapshot.ts';
import { egressPool, node, snapshot, staticEgress, withConfirmations, written } from '../testdata.ts';

const BLOCK = ['192.0.2.96/28', '2001:db8::100/124'];
const all = { podSelector: {} } as const;
const labeled = (app: string): StaticEgressRule => ({ podSelector: { matchLabels: { app } }, pool: 'public' });

/** Addresses by rule, as the status says. */
const addressesOf = ({ rules }: EgressSnapshot, name = 'partner'): Record<number, string[]> => {
  const { status } = rules.find(({ metadata }) => metadata.name === name)!;
  const byRule: Record<number, string[]> = {};
  for (const { rule, address } of status?.addresses ?? []) (byRule[rule] ??= []).push(address);
  return byRule;
};
const step = (given: EgressSnapshot): EgressSnapshot => withConfirmations(written(given, planEgress(given)));
const withRules = (given: EgressSnapshot, rules: readonly StaticEgressRule[]): EgressSnapshot => ({
  ...given,
  rules: given.rules.map((object) => ({ ...object, spec: { rules } })),
});
const start = (rules: readonly StaticEgressRule[], rest: Partial<EgressSnapshot> = {}): EgressSnapshot =>
  step(snapshot({ rules: [staticEgress(rules)], pools: [egressPool({ blocks: BLOCK })], ...rest }));

test('a rule gets the lowest free address of each family that it covers', () => {
  expect(addressesOf(start([labeled('a'), { ...labeled('b'), cidr: '0.0.0.0/0' }]))).toEqual({
    0: ['192.0.2.96', '2001:db8::100'],
    1: ['192.0.2.97'],
  });
});

test('never given: exclusions, next hops, addresses of nodes, of subnets and those that rules name', () => {
  const pools = [
    egressPool({
      ranges: [{ from: '192.0.2.250', to: '192.0.2.255' }],
      exclusions: ['192.0.2.251'],
      nextHops: ['192.0.2.252'],
    }),
  ];
  const rules = [
    staticEgress([{ ...all, pool: 'public', addresses: 6 }]),
    staticEgress([{ ...all, egressip: '192.0.2.253' }], { name: 'named' }),
  ];
  const given = step(snapshot({ pools, rules, nodes: [node(250)] }));
  expect(addressesOf(given)).toEqual({ 0: ['192.0.2.254'] });
});

test('it stays when rules are inserted, reordered and removed', () => {
  let given = start([labeled('a'), labeled('b')]);
  const { 0: ofA, 1: ofB } = addressesOf(given);
  given = step(withRules(given, [labeled('new'), labeled('b'), labeled('a')]));
  expect(addressesOf(given)).toMatchObject({ 1: ofB, 2: ofA });
  given = step(withRules(given, [labeled('b')]));
  expect(addressesOf(given)).toEqual({ 0: ofB });
});

test('it stays when the selection or the destination of its rule changes in place', () => {
  let given = start([labeled('a'), labeled('b')]);
  const before = addressesOf(given);
  given = step(withRules(given, [labeled('other'), labeled('b')]));
  expect(addressesOf(given)).toEqual(before);
});

test('it stays without pods, with an exclusion, with further blocks, and while its pool is missing', () => {
  let given = start([labeled('a')]);
  const before = addressesOf(given);
  const changes: Partial<EgressSnapshot>[] = [
    { pods: [] },
    { pools: [egressPool({ blocks: ['192.0.2.64/28', ...BLOCK], exclusions: ['192.0.2.96'] })] },
    { pools: [] },
    { namespaces: [] },
    { nodes: [] },
  ];
  for (const change of changes) {
    given = step({ ...given, ...change });
    expect(addressesOf(given)).toEqual(before);
  }
});

test('while a pool is missing its addresses are kept, used by nobody and owned by nobody', () => {
  const given = start([labeled('web')]);
  const without = step({ ...given, pools: [] });
  const plan = planEgress(without);
  expect(plan.ownerships.size).toBe(0);
  expect([...plan.slices.values()].flatMap(({ owned = [] }) => owned)).toEqual([]);
  expect(plan.routedPods.get('uid-p1')!.routes).toMatchObject([{ route: { whenUnavailable: 'Drop' } }]);
  expect(plan.routedPods.get('uid-p1')!.routes[0]!.route.egress).toBeUndefined();
});

test('it ends when the pool loses the block, and with a lower number of addresses the last ones go', () => {
  let given = start([{ ...labeled('a'), addresses: 3 }], { pools: [egressPool({ blocks: ['192.0.2.96/28'] })] });
  given = step(withRules(given, [{ ...labeled('a'), addresses: 2 }]));
  expect(addressesOf(given)).toEqual({ 0: ['192.0.2.96', '192.0.2.97'] });
  given = step({ ...given, pools: [egressPool({ blocks: ['192.0.2.64/28'] })] });
  expect(addressesOf(given)).toEqual({ 0: ['192.0.2.64', '192.0.2.65'] });
});

const anyRule = fc.record({
  podSelector: fc.constantFrom({}, { matchLabels: { app: 'a' } }, { matchLabels: { app: 'b' } }),
  pool: fc.constantFrom('public', 'public', 'other'),
  addresses: fc.integer({ min: 1, max: 3 }),
});
const anyObjects = fc.uniqueArray(
  fc.record({ name: fc.constantFrom('a', 'b', 'c', 'd'), rules: fc.array(anyRule, { minLength: 1, maxLength: 3 }) }),
  { selector: ({ name }) => name, maxLength: 4 },
);

test('no address is allocated twice, and none of a rule that is left alone changes, over any history of edits', () => {
  const pools = [
    egressPool({ blocks: ['192.0.2.96/29'] }),
    egressPool({ blocks: ['192.0.2.104/30'] }, { name: 'other' }),
  ];
  fc.assert(
    fc.property(fc.array(anyObjects, { minLength: 2, maxLength: 6 }), (edits) => {
      let given = snapshot({ pools });
      let before = new Map<string, StaticEgressIP>();
      for (const objects of edits) {
        const rules = objects.map(({ name, rules }) => staticEgress(rules, { name }, before.get(name)?.status));
        given = step({ ...given, rules });
        const allocated = given.rules.flatMap(({ status }) => (status?.addresses ?? []).map(({ address }) => address));
        expect(new Set(allocated).size).toBe(allocated.length);
        for (const object of given.rules) {
          const former = before.get(object.metadata.name);
          if (former && JSON.stringify(former.spec) === JSON.stringify(object.spec)) {
            const texts = ({ status }: StaticEgressIP) => (status?.addresses ?? []).map(({ address }) => address);
            expect(texts(object)).toEqual(expect.arrayContaining(texts(former)));
          }
        }
        before = new Map(given.rules.map((object) => [object.metadata.name, object]));
      }
    }),
    { numRuns: 100 },
  );
});
