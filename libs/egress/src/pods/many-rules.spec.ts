import type { StaticEgressIP, StaticEgressRule } from '@unbounded/crds';
import { growthBelow } from '@unbounded/testing/growth';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type EgressSnapshot, namedServices, planEgress, selectsByLabels, serviceSelects } from '../index.ts';
import { anySnapshot } from '../random-egress.testdata.ts';
import { pod, snapshot, staticEgress } from '../testdata.ts';

/** What rules of one namespace cost everybody else. */

const RULES_OF_OBJECT = 32;
const objectsOf = (count: number, ruleOf: (number: number) => Partial<StaticEgressRule>): StaticEgressIP[] =>
  Array.from({ length: Math.ceil(count / RULES_OF_OBJECT) }, (_, object) =>
    staticEgress(
      Array.from({ length: RULES_OF_OBJECT }, (_, index) => ({
        ...{ egressip: '192.0.2.100', podSelector: {} },
        ...ruleOf(object * RULES_OF_OBJECT + index),
      })),
      { name: `r${object}` },
    ),
  );
const host = (number: number): string => `198.${number >> 16}.${(number >> 8) & 255}.${number & 255}/32`;
const hostRules = (count: number) => objectsOf(count, (number) => ({ cidr: host(number), priority: number }));

test('ten times as many rules that all select a pod cost ten times as much, and not a hundred times', () => {
  const planOf = (count: number) => {
    const given = snapshot({ rules: hostRules(count), pods: [pod(1), pod(2)] });
    return () => void planEgress(given);
  };
  expect(growthBelow(40, planOf(4000), planOf(40_000))).toBeLessThan(40);
});

test('of 40,000 rules that all select a pod those are dropped that do not fit', () => {
  const plan = planEgress(snapshot({ rules: hostRules(40_000), pods: [pod(1), pod(2)] }));
  const { routes } = plan.routedPods.get('uid-p1')!;
  expect(routes.map(({ route }) => route.destinations[0])).toEqual([
    ...Array.from({ length: 63 }, (_, number) => host(number)),
    '0.0.0.0/0',
  ]);
  for (const [key, place] of [
    ['StaticEgressIP/shop/r1', 31], // the first rule that does not fit
    ['StaticEgressIP/shop/r100', 0],
    ['StaticEgressIP/shop/r1249', 0],
  ] as const) {
    const covered = plan.ruleStatuses.get(key)!.conditions.find(({ type }) => type === 'PodsCovered')!;
    expect(covered).toMatchObject({ status: 'False', reason: 'TooManyRules' });
    expect(covered.message).toContain(`spec.rules[${place}] "shop/p1, shop/p2": these pods have too many rules`);
  }
});

test('rules that an earlier one shadows take no place, as far as rules are looked at', () => {
  const everything = { podSelector: {}, egressip: '192.0.2.101', priority: 1 };
  const first = staticEgress([everything], { name: 'first' });
  const few = [first, ...objectsOf(900, (number) => ({ cidr: host(number) }))];
  expect(planEgress(snapshot({ rules: few })).routedPods.get('uid-p1')!.routes.length).toBe(1);
  const many = [first, ...objectsOf(2000, (number) => ({ cidr: host(number) }))];
  const { routes } = planEgress(snapshot({ rules: many })).routedPods.get('uid-p1')!;
  expect(routes.map(({ route }) => route.rule)).toEqual(['StaticEgressIP/shop/first/0', 'none: too many rules']);
});

test('many pods beyond the limit are counted, and five of them named', () => {
  const pods = Array.from({ length: 40 }, (_, index) => pod(index + 10));
  const plan = planEgress(snapshot({ pods, rules: objectsOf(1100, (number) => ({ cidr: host(number) })) }));
  const covered = plan.ruleStatuses
    .get('StaticEgressIP/shop/r9')!
    .conditions.find(({ type }) => type === 'PodsCovered')!;
  expect(covered.message).toContain('"shop/p10, shop/p11, shop/p12, shop/p13, shop/p14 and 35 more"');
});

test('to find out that no rule selects its pod costs an agent ten times as much for ten times as many rules', () => {
  const askOf = (count: number) => {
    const rules = objectsOf(count, (number) => ({ podSelector: { matchLabels: { app: `a${number}` } } }));
    const labels = { app: 'web', tier: 'front' };
    return () => expect(selectsByLabels(rules, [], { labels, namespaceLabels: {} })).toBe(false);
  };
  expect(growthBelow(40, askOf(4000), askOf(40_000))).toBeLessThan(40);
});

/** As an agent asks. */
const isSelected = ({ rules, clusterRules, services, namespaces }: EgressSnapshot, one: EgressSnapshot['pods'][0]) => {
  const own = rules.filter(({ metadata }) => metadata.namespace === one.namespace);
  const namespaceLabels = namespaces.find(({ name }) => name === one.namespace)?.labels ?? {};
  if (selectsByLabels(own, clusterRules, { labels: one.labels, namespaceLabels })) return true;
  const named = services.filter(({ namespace, name }) => namespace === one.namespace && namedServices(own).has(name));
  return named.some(({ selector }) => serviceSelects(selector, one.labels));
};

test('an agent and the controller select the same pods', () => {
  const ofServices = fc.constantFrom('web', 'empty', 'missing', undefined);
  let selected = 0;
  fc.assert(
    fc.property(anySnapshot, ofServices, (given, name) => {
      const byService = staticEgress([{ ...(name && { 'service-name': name }), egressip: '192.0.2.209' }], {
        name: 'x',
      });
      const one: EgressSnapshot = {
        ...given,
        rules: [...given.rules, byService],
        services: [...given.services, { namespace: 'shop', name: 'empty', selector: {} }],
      };
      const { selectedPods } = planEgress(one);
      selected += selectedPods.size;
      for (const each of one.pods) expect(isSelected(one, each)).toBe(selectedPods.has(each.uid));
    }),
  );
  expect(selected).toBeGreaterThan(0);
});
