import { AddressSet, parseAddress, parsePrefix } from '@unbounded/ip';
import { describe, expect, test } from 'vitest';
import { withoutProtected } from './kept-plan.ts';
import { planIn } from '../explain/plan-table.ts';
import type { NodePlan } from '../plan.ts';
import { cluster, gateway, join, pool, site } from '../testdata.ts';
import type { TopologyObjects } from '../world/world.ts';

const base = cluster({ sites: 2, gateways: 1, workers: 1 });
const API = 'an address of the API server';

const withSite = (block: string): TopologyObjects => {
  const one = site(9);
  return {
    ...base,
    sites: [...base.sites, { ...one, spec: { ...one.spec, podCidrAssignments: [{ cidrBlocks: [block] }] } }],
    assignments: [...base.assignments, join('assignments', 'a9', { sites: ['s9'], gatewayPools: ['p2'] })],
  };
};
/** Pods of s9 have 100.73.0.0/16; a gateway of s2 says that this is its external address. */
const withExternal = (address: string): TopologyObjects => ({
  ...withSite('100.73.0.0/16'),
  gatewayPools: [base.gatewayPools[0]!, pool('p2', [{ ...gateway(2, 1), externalIPs: [address] }])],
});

const covered = (prefixes: readonly string[] | undefined, address: string): boolean =>
  AddressSet.of((prefixes ?? []).map(parsePrefix)).has(parseAddress(address));
/** Whether the address counts as a pod's: forged when it comes in by no tunnel, not masqueraded, not to leave in the clear. */
const countsAsPods = ({ masquerade, withheld }: NodePlan, address: string): boolean[] =>
  [masquerade.sources, masquerade.exceptTo, withheld].map((prefixes) => covered(prefixes, address));

describe('a block of pods that is not routed', () => {
  test('stays the pods’, whatever address a gateway says that it has: what is for it never leaves in the clear', () => {
    const plan = planIn(withExternal('100.73.0.9'), 's1-g1');
    expect(plan.problems.map(({ reason }) => reason)).toContain('RouteOverlapsUnderlay');
    expect([...plan.blocks.map(({ prefix }) => prefix), ...plan.contained]).not.toContain('100.73.0.0/16');
    expect(countsAsPods(plan, '100.73.5.5')).toEqual([true, true, true]);
    expect(countsAsPods(plan, '100.73.0.9')).toEqual([false, false, false]);
    expect(planIn(withExternal('203.0.113.120'), 's1-g1').withheld).toBeUndefined();
  });

  test('leaves the API server reachable', () => {
    const protectedAddresses = [{ address: '100.73.0.99', role: API }];
    const plan = planIn(withExternal('100.73.0.9'), 's1-g1', { protectedAddresses });
    expect(countsAsPods(plan, '100.73.0.99')).toEqual([false, false, false]);
    expect(countsAsPods(plan, '100.73.5.5')).toEqual([true, true, true]);
  });

  test('takes nothing of the node’s own network, which it holds by mistake', () => {
    const plan = planIn(withSite('10.0.0.0/8'), 's1-g1');
    expect(countsAsPods(plan, '10.1.0.250')).toEqual([false, false, false]);
    expect(countsAsPods(plan, '10.77.0.1')).toEqual([true, true, true]);
  });

  test('of a Site on the same network that another CNI plugin manages is left to it', () => {
    const [first, second] = base.sites;
    const podCidrAssignments = [{ cidrBlocks: ['10.1.0.0/25'] }];
    const foreign = { ...first!, spec: { ...first!.spec, manageCniPlugin: false, podCidrAssignments } };
    const plan = planIn({ ...base, sites: [foreign, second!] }, 's1-g1');
    expect(plan.problems.map(({ reason }) => reason)).toContain('RouteOverlapsUnderlay');
    expect(plan.withheld).toBeUndefined();
    expect(covered(plan.masquerade.sources, '10.1.0.77')).toBe(false);
  });

  test('in a kept plan lets the API server through that has an address of it since then', () => {
    const plan = planIn(withExternal('100.73.0.9'), 's1-g1');
    const cleaned = withoutProtected(plan, [{ address: '100.73.5.5', role: API }]);
    expect(covered(cleaned.withheld, '100.73.5.5')).toBe(false);
    expect(covered(cleaned.masquerade.sources, '100.73.5.5')).toBe(false);
    expect(covered(cleaned.withheld, '100.73.5.6')).toBe(true);
  });
});
