import { expect, test } from 'vitest';
import { advertisedRoutes } from './advertised-routes.ts';
import { parseWorld } from '../world/parse-world.ts';
import { cluster, gateway, join, pool } from '../testdata.ts';
import type { TopologyObjects } from '../world/world.ts';

const base = cluster({ sites: 3, gateways: 1, workers: 1 });
const chain: TopologyObjects = {
  ...base,
  gatewayPools: [...base.gatewayPools.slice(0, 2), pool('p3', [gateway(3, 1)], { routedCidrs: ['192.168.0.0/16'] })],
  poolPeerings: [
    join('poolPeerings', 'a', { gatewayPools: ['p1', 'p2'] }),
    join('poolPeerings', 'b', { gatewayPools: ['p2', 'p3'] }),
  ],
};
const site = (name: string) => ({ type: 'Site', name });
const hop = (name: string) => ({ type: 'GatewayPool', name });

test('a gateway offers what its pool serves, and what lies behind peered pools with the way there', () => {
  const routes = advertisedRoutes(parseWorld(chain), 's1-g1');
  expect(Object.keys(routes)).toHaveLength(7);
  expect(routes['100.65.0.0/16']).toEqual({ type: 'PodCidr', source: 's1', paths: [[site('s1'), hop('p1')]] });
  expect(routes['10.2.0.0/24']).toEqual({
    type: 'NodeCidr',
    source: 's2',
    intermediateHops: [hop('p2')],
    paths: [[site('s2'), hop('p2'), hop('p1')]],
  });
  expect(routes['100.67.0.0/16']?.paths).toEqual([[site('s3'), hop('p3'), hop('p2'), hop('p1')]]);
  expect(routes['192.168.0.0/16']).toEqual({
    type: 'RoutedCidr',
    source: 'p3',
    intermediateHops: [hop('p2')],
    paths: [[hop('p3'), hop('p2'), hop('p1')]],
  });
});

test('a pool’s own routed blocks have the pool alone on their way', () => {
  expect(advertisedRoutes(parseWorld(chain), 's3-g1')['192.168.0.0/16']).toEqual({
    type: 'RoutedCidr',
    source: 'p3',
    paths: [[hop('p3')]],
  });
});

test('a site served by two pools is reached by the ways through both', () => {
  const both = {
    ...chain,
    assignments: [...chain.assignments, join('assignments', 'x', { sites: ['s3'], gatewayPools: ['p1'] })],
  };
  const routes = advertisedRoutes(parseWorld(both), 's2-g1');
  expect(routes['100.67.0.0/16']?.paths).toEqual([
    [site('s3'), hop('p1'), hop('p2')],
    [site('s3'), hop('p3'), hop('p2')],
  ]);
});

test('no more than 1000 blocks are offered, the nearest first', () => {
  const routedCidrs = Array.from({ length: 1200 }, (_, i) => `172.${16 + (i >> 8)}.${i & 255}.0/24`);
  const many = {
    ...chain,
    gatewayPools: [...chain.gatewayPools.slice(0, 2), pool('p3', [gateway(3, 1)], { routedCidrs })],
  };
  const routes = advertisedRoutes(parseWorld(many), 's1-g1');
  expect(Object.keys(routes)).toHaveLength(1000);
  expect(routes['100.65.0.0/16']).toBeDefined();
});

test('a worker, and a node that is not listed, offer nothing', () => {
  expect(advertisedRoutes(parseWorld(chain), 's1-w1')).toEqual({});
  expect(advertisedRoutes(parseWorld(chain), 'unknown')).toEqual({});
});
