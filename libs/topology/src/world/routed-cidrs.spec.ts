import { containsPrefix, parsePrefix } from '@unbounded/ip';
import { expect, test } from 'vitest';
import { findMember, planNode } from '../node.plan.ts';
import { cluster, gateway, pool } from '../testdata.ts';
import { parseWorld } from './parse-world.ts';

/** Two sites, of which the pool of the first routes these blocks too. */
const worldWith = (routedCidrs: readonly string[]) => {
  const objects = cluster({ sites: 2, gateways: 1, workers: 2, protocol: 'VXLAN' });
  return parseWorld({
    ...objects,
    gatewayPools: [pool('p1', [gateway(1, 1)], { routedCidrs }), ...objects.gatewayPools.slice(1)],
  });
};
const planOf = (world: ReturnType<typeof worldWith>, name: string) =>
  planNode(world, { member: findMember(world, name)!, underlayMtuBytes: 1500 });

test.each(['100.65.31.128/25', '100.65.31.0/24', '100.66.0.0/20', '100.65.0.0/16'])(
  'a pool draws no packets away from pods: %s inside the blocks of a Site is not routed, and is a problem',
  (routed) => {
    const [without, world] = [worldWith([]), worldWith([routed])];
    for (const name of ['s1-w1', 's1-g1', 's2-w2', 's2-g1']) {
      const [plan, before] = [planOf(world, name), planOf(without, name)];
      expect(plan.blocks).toEqual(before.blocks);
      expect(plan.problems.filter(({ reason }) => reason === 'RoutedCidrsHoldPods')).toHaveLength(1);
    }
  },
);

test('a wider block, or another one, is routed as it was: pods have the narrower ones', () => {
  const world = worldWith(['100.0.0.0/8', '192.168.7.0/24']);
  expect(world.problems).toEqual([]);
  const prefixes = planOf(world, 's2-w1').blocks.map(({ prefix }) => prefix);
  expect(prefixes).toEqual(expect.arrayContaining(['100.0.0.0/8', '192.168.7.0/24']));
  expect(prefixes.some((prefix) => containsPrefix(parsePrefix('100.65.0.0/16'), parsePrefix(prefix)))).toBe(true);
});
