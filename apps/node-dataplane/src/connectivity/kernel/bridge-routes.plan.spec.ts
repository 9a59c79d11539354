import { describe, expect, test } from 'vitest';
import { planFor } from '../../testdata.ts';
import { planBridgeRoutes } from './bridge-routes.plan.ts';

const plan = {
  ...planFor('w1'),
  podCidrs: ['100.65.30.0/24', 'fd64:65:30::/64'],
  ownAddresses: ['10.1.0.30', 'fd00:1::30'],
};
const bridge = new Map([['cbr0', { index: 7 }]]);
const routesOf = (...given: Parameters<typeof planBridgeRoutes>): string[] =>
  planBridgeRoutes(...given).map(({ dst, link, prefSrc }) => `${dst} dev ${link} src ${prefSrc}`);

describe('routes to the node’s own pods', () => {
  test('prefer its InternalIP, and are narrower than the bridge’s own', () => {
    expect(routesOf(plan, bridge)).toEqual([
      '100.65.30.0/25 dev 7 src 10.1.0.30',
      '100.65.30.128/25 dev 7 src 10.1.0.30',
      'fd64:65:30::/65 dev 7 src fd00:1::30',
      'fd64:65:30:0:8000::/65 dev 7 src fd00:1::30',
    ]);
  });

  test('are there for families in which the node has an address', () => {
    expect(routesOf({ ...plan, ownAddresses: ['10.1.0.30'] }, bridge)).toHaveLength(2);
  });

  test('are not there without a bridge of ours, or for a block without pods', () => {
    expect(routesOf(plan, new Map())).toEqual([]);
    expect(routesOf({ ...plan, manageCni: false }, bridge)).toEqual([]);
    expect(routesOf({ ...plan, podCidrs: ['100.65.30.8/31', '100.65.30.1/32'] }, bridge)).toEqual([]);
  });
});
