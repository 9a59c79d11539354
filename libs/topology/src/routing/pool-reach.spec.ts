import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyCluster } from '../random-cluster.testdata.ts';
import { cluster, gateway, inFamilies, join, pool } from '../testdata.ts';
import { parseWorld } from '../world/parse-world.ts';
import type { TopologyObjects } from '../world/world.ts';
import { advertisedRoutes } from './advertised-routes.ts';
import { servedSites } from './distances.ts';
import { reachOfPools } from './pool-reach.ts';

const assign = (name: string, sites: string[], gatewayPools: string[], spec: object = {}) =>
  join('assignments', name, { sites, gatewayPools, ...spec });
const peerPools = (...gatewayPools: string[]) => join('poolPeerings', gatewayPools.join('-'), { gatewayPools });
const base = cluster({ sites: 3, gateways: 1, workers: 1 });
const chain: TopologyObjects = { ...base, poolPeerings: [peerPools('p1', 'p2'), peerPools('p2', 'p3')] };

const reachIn = (objects: TopologyObjects): Record<string, string> =>
  Object.fromEntries(
    [...reachOfPools(parseWorld(objects))].map(([name, { connectedSites, reachableSites }]) => [
      name,
      `${connectedSites.join(' ')} / ${reachableSites.join(' ')}`,
    ]),
  );

test('a pool reaches the Sites that it serves and those behind peered pools', () =>
  expect(reachIn(chain)).toEqual({ p1: 's1 / s1 s2 s3', p2: 's2 / s1 s2 s3', p3: 's3 / s1 s2 s3' }));

test('a pool without gateways reaches nothing and leads nowhere', () =>
  expect(reachIn({ ...chain, gatewayPools: base.gatewayPools.with(1, pool('p2', [])) })).toEqual({
    p1: 's1 / s1',
    p2: ' / ',
    p3: 's3 / s3',
  }));

test('a Site that shares a network with a served one is connected; without a pool that serves it it is not reachable', () =>
  expect(
    reachIn({
      ...chain,
      assignments: [assign('a', ['s1'], ['p1'])],
      sitePeerings: [join('sitePeerings', 'x', { sites: ['s1', 's2'] })],
    }),
  ).toMatchObject({ p1: 's1 s2 / s1', p2: ' / s1' }));

test('an assignment to a Site that the pool’s gateways cannot meet neither connects nor leads there', () => {
  const { externalIPs: _, ...inner } = gateway(1, 1);
  const far = {
    ...base,
    gatewayPools: [pool('p1', [inner], { type: 'Internal' }), pool('p2', [gateway(3, 1)])],
    assignments: [assign('a', ['s1', 's2'], ['p1'])],
    poolPeerings: [peerPools('p1', 'p2')],
  };
  expect(reachIn(far)).toEqual({ p1: 's1 / s1', p2: ' / s1' });
});

test('Sites and pools that do not exist, and disabled objects, do not count', () =>
  expect(
    reachIn({
      ...base,
      assignments: [assign('a', ['s1', 'none'], ['p1', 'none']), assign('b', ['s2'], ['p1'], { enabled: false })],
      poolPeerings: [peerPools('p1', 'none')],
    }),
  ).toEqual({ p1: 's1 / s1', p2: ' / ', p3: ' / ' }));

test('gateways without a block of a family lead to no pods of it', () => {
  const ipv6 = inFamilies(chain, '6', '4');
  const old = { ...ipv6, gatewayPools: ipv6.gatewayPools.with(1, chain.gatewayPools[1]!) };
  const sites = ipv6.sites.with(1, chain.sites[1]!);
  expect(reachIn(ipv6)).toMatchObject({ p1: 's1 / s1 s2 s3' });
  expect(reachIn({ ...old, sites })).toEqual({ p1: 's1 / s1', p2: 's2 / s2', p3: 's3 / s3' });
});

test('reachable are the Sites that the pool serves and those whose pods its gateways advertise', () =>
  fc.assert(
    fc.property(anyCluster, (objects) => {
      const world = parseWorld(objects);
      for (const [name, { reachableSites }] of reachOfPools(world)) {
        const advertised = world.pools
          .get(name)!
          .gateways.flatMap((node) => Object.values(advertisedRoutes(world, node.name)))
          .flatMap(({ type, source }) => (type === 'PodCidr' && source !== undefined ? [source] : []));
        expect(new Set(reachableSites)).toEqual(new Set([...servedSites(world, name), ...advertised]));
      }
    }),
    { numRuns: 200 },
  ));
