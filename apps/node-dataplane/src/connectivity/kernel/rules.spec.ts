import { expect, test } from 'vitest';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { planFor } from '../../testdata.ts';
import { rulesOf } from './rules.ts';

const familiesOf = (plan: KernelPlan) => rulesOf(plan).map(({ family }) => family);
const IPV4 = planFor('w1', 'VXLAN', 'netlink');
const [route] = IPV4.routes;

test('the netlink data path has a rule for each family that has routes: a kernel may have no IPv6', () => {
  expect(familiesOf(IPV4)).toEqual([4]);
  expect(familiesOf({ ...IPV4, routes: [...IPV4.routes, { ...route!, prefix: '2001:db8::/32' }] })).toEqual([4, 6]);
});

test('the eBPF data path has none of these', () => {
  expect(familiesOf(planFor('w1'))).toEqual([]);
});
