import { describe, expect, test } from 'vitest';
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

describe('between hubs', () => {
  const hubs = (sites: number, count: number, name = (index: number) => `p${index}`): TopologyObjects => {
    const all = cluster({ sites, gateways: 1, workers: 0 });
    const named = (text: string): string => name(Number(text.slice(1)));
    return {
      ...all,
      gatewayPools: all.gatewayPools.map((one) => pool(named(one.metadata.name), one.status!.nodes!)),
      assignments: all.assignments.map((one, index) =>
        join('assignments', one.metadata.name, { sites: [`s${index + 1}`], gatewayPools: [name(index + 1)] }),
      ),
      poolPeerings: Array.from({ length: count }, (_, hub) =>
        Array.from({ length: sites - count }, (_of, spoke) =>
          join('poolPeerings', `h${hub}-${spoke}`, { gatewayPools: [name(hub + 1), name(count + spoke + 1)] }),
        ),
      ).flat(),
    };
  };
  const bytesOf = (objects: TopologyObjects): number =>
    JSON.stringify(advertisedRoutes(parseWorld(objects), 's60-g1')).length;
  const pathsIn = (objects: TopologyObjects): number[] =>
    Object.values(advertisedRoutes(parseWorld(objects), 's60-g1')).map(({ paths }) => paths!.length);

  test('of many paths eight are advertised', () => {
    expect(Math.max(...pathsIn(hubs(60, 20)))).toBe(8);
  });

  test('where these are too long, all blocks by fewer', () => {
    const long = hubs(120, 20, (index) => `${'p'.repeat(60)}${index}`);
    expect(bytesOf(long)).toBeLessThanOrEqual(256 * 1024);
    expect(pathsIn(long)).toHaveLength(240);
    expect(Math.max(...pathsIn(long))).toBe(2);
  });

  test('where one each is too long, the nearest', () => {
    const routedCidrs = Array.from({ length: 900 }, (_, i) => `172.${16 + (i >> 8)}.${i & 255}.0/24`);
    const name = (index: number) => `${'p'.repeat(200)}${index}`;
    const long = hubs(60, 2, name);
    const gatewayPools = long.gatewayPools.map((one) => ({
      ...one,
      spec: { ...one.spec, ...(one.metadata.name === name(59) ? { routedCidrs } : {}) },
    }));
    const routes = advertisedRoutes(parseWorld({ ...long, gatewayPools }), 's60-g1');
    expect(JSON.stringify(routes).length).toBeLessThanOrEqual(256 * 1024);
    expect(Object.keys(routes).length).toBeGreaterThan(100);
    expect(routes['100.124.0.0/16']).toBeDefined();
    expect(routes['172.19.131.0/24']).toBeUndefined();
  });
});
