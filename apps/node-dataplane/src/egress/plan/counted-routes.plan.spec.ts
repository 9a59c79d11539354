import { expect, test } from 'vitest';
import { ADDRESSES } from '../egress-network.testdata.ts';
import { owns, planFor, pods, route } from '../egress-plans.testdata.ts';
import { countedBy, countedRoutes } from './counted-routes.plan.ts';
import type { EgressPlan, PodRoute } from './egress-plan.ts';
import { planEgressTable } from './tables.plan.ts';

const planOf = (routes: readonly PodRoute[], more: Partial<EgressPlan> = {}): EgressPlan =>
  planFor('gateway', {
    translated: [pods('pod', 'worker', routes)],
    addresses: owns('first'),
    ...more,
  });
const web = route('first', 'gateway', { rule: 'StaticEgressIP/shop/web/0' });

test('what is translated here is counted by rule and address, each once', () => {
  const plan = planOf([web, route('second', 'worker'), route(undefined, 'gateway')], {
    steered: [pods('gatewayPod', 'gateway', [web])],
  });
  expect(countedRoutes(plan)).toEqual([
    {
      rule: 'StaticEgressIP/shop/web/0',
      address: ADDRESSES.first[0],
      counters: {
        out: 'out/10.1.0.200/StaticEgressIP/shop/web/0',
        in: 'in/10.1.0.200/StaticEgressIP/shop/web/0',
      },
    },
    {
      rule: 'StaticEgressIP/shop/web/0',
      address: ADDRESSES.first[1],
      counters: {
        out: 'out/fd00_1__200/StaticEgressIP/shop/web/0',
        in: 'in/fd00_1__200/StaticEgressIP/shop/web/0',
      },
    },
  ]);
  expect(countedRoutes(planFor('worker', { steered: [pods('pod', 'worker', [web])] }))).toEqual([]);
});

test('a change of another rule leaves the names of counters as they are', () => {
  const names = (plan: EgressPlan) => planEgressTable(plan).counters ?? [];
  const former = route('first', 'gateway', { rule: 'StaticEgressIP/shop/api/0', destinations: ['192.0.2.0/24'] });
  expect(names(planOf([former, web]))).toEqual(expect.arrayContaining([...names(planOf([web]))]));
});

test('rules beyond the limit are counted together, for each address', () => {
  const rules = [0, 1, 2, 3].map((index) =>
    route('first', 'gateway', { rule: `StaticEgressIP/shop/web/${index}`, destinations: ['0.0.0.0/0'] }),
  );
  const counted = countedRoutes(planOf(rules), 2);
  expect(counted.map(({ rule }) => rule)).toEqual([
    'StaticEgressIP/shop/web/0',
    'StaticEgressIP/shop/web/0',
    'others',
    'others',
  ]);
  const find = countedBy(counted);
  expect(find(rules[3]!, ADDRESSES.first[0])).toMatchObject({ rule: 'others', address: ADDRESSES.first[0] });
  expect(find(rules[0]!, ADDRESSES.first[1])).toMatchObject({ rule: 'StaticEgressIP/shop/web/0' });
});

test('names are such as nft reads, and fit into the kernel', () => {
  const long = `StaticEgressIP/${'n'.repeat(63)}/${'r'.repeat(253)}`;
  const counted = countedRoutes(planOf([`${long}/0`, `${long}/1`, 'odd name"'].map((rule) => ({ ...web, rule }))));
  const names = counted.flatMap(({ counters }) => Object.values(counters));
  expect(new Set(names).size).toBe(12);
  for (const name of names) expect(name).toMatch(/^[a-z][\w./-]{1,239}$/);
});
