import { formatPrefix, parsePrefix } from '@unbounded/ip';
import { describe, expect, test } from 'vitest';
import { planIn } from '../explain/plan-table.ts';
import { cluster, inFamilies } from '../testdata.ts';
import { echoAddress } from './echoes.plan.ts';

test.each([
  ['100.64.3.0/24', '100.64.3.0/32'],
  ['100.64.3.4/30', '100.64.3.4/32'],
  ['100.64.3.4/31', undefined],
  ['fd00:1::/64', 'fd00:1::ffff:ffff:ffff:ffff/128'],
  ['fd00:1::/127', undefined],
])('of %s the address that no pod has is %s', (block, address) => {
  const found = echoAddress(parsePrefix(block));
  expect(found && formatPrefix(found)).toBe(address);
});

describe('echoes', () => {
  const objects = cluster({ sites: 2, gateways: 2, workers: 2, protocol: 'VXLAN' });
  const through = (node: string, given = objects): string[] =>
    (planIn(given, node).echoes ?? []).map(({ node: gateway, family }) => `${gateway} ${family}`);

  test('go through the gateways of a worker, and through every gateway that a gateway is linked with', () => {
    expect(through('s1-w1')).toEqual(['s1-g1 4', 's1-g2 4']);
    expect(through('s1-g1')).toEqual(['s1-g2 4', 's2-g1 4', 's2-g2 4']);
  });

  test('in each family that both ends have', () => {
    expect(through('s1-w1', inFamilies(objects, '46', '4'))).toEqual(['s1-g1 4', 's1-g1 6', 's1-g2 4', 's1-g2 6']);
  });

  test('have an address of the own block, which only gateways may bring back', () => {
    const { echoes, tunnels, wireGuard } = planIn(objects, 's1-g1');
    expect(new Set(echoes?.map(({ localAddress }) => localAddress))).toEqual(new Set(['100.65.21.0']));
    const bringing = [
      ...tunnels.filter(({ sources }) => sources.includes('100.65.21.0/32')).map(({ node }) => node),
      ...wireGuard.flatMap(({ peers }) =>
        peers.filter(({ allowedIps }) => allowedIps.includes('100.65.21.0/32')).map(({ node }) => node),
      ),
    ];
    expect(bringing.sort()).toEqual(['s1-g2', 's2-g1', 's2-g2']);
  });

  test('are not sent where another plug-in manages the pods, natively, or where probes are off', () => {
    const unmanaged = {
      ...objects,
      sites: objects.sites.map((site) => ({ ...site, spec: { ...site.spec, manageCniPlugin: false } })),
    };
    expect(through('s1-w1', unmanaged)).toEqual([]);
    expect(through('s1-w1', cluster({ sites: 1, gateways: 2, workers: 2, protocol: 'None' }))).toEqual([]);
    const off = <T extends { readonly spec: object }>(those: readonly T[]): T[] =>
      those.map((one) => ({ ...one, spec: { ...one.spec, healthCheckSettings: { enabled: false } } }));
    expect(through('s1-w1', { ...objects, assignments: off(objects.assignments) })).toEqual([]);
    expect(planIn(objects, 's1-w1', { echoFamilies: [6] }).echoes).toBeUndefined();
  });
});
