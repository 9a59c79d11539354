import { parseWorld, type TopologyObjects } from '@unbounded/topology';
import { expect, test } from 'vitest';
import { layoutOf } from '../../layout/layout.ts';
import { worldObjects } from './world-objects.ts';

interface Named {
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

const layout = layoutOf({ fabric: true, gateways: 2, workers: 1, ip: 'dual' });
const key = (index: number): string => Buffer.alloc(32, index + 1).toString('base64');
const reports = new Map(layout.nodes.map(({ name }, index) => [name, { publicKey: key(index), protocols: ['VXLAN'] }]));
const of = (kind: string, objects: readonly object[]) =>
  (objects as Named[]).filter((object) => object.kind === kind) as unknown[];
const worldOf = (objects: readonly object[]) =>
  parseWorld({
    sites: of('Site', objects),
    slices: of('SiteNodeSlice', objects),
    gatewayPools: of('GatewayPool', objects),
    sitePeerings: of('SitePeering', objects),
    assignments: of('SiteGatewayPoolAssignment', objects),
    poolPeerings: of('GatewayPoolPeering', objects),
    meshes: of('Mesh', objects),
  } as TopologyObjects);

test('the planner finds nothing to complain of, every gateway in its pool and every worker in its site', () => {
  const world = worldOf(worldObjects(layout, reports));
  expect(world.problems).toEqual([]);
  expect(world.workers.map(({ name, site }) => `${name} ${site}`)).toEqual(['s1-w1 s1', 's2-w1 s2']);
  const gateways = [...world.pools.values()].flatMap((pool) => pool.gateways);
  expect(gateways.map(({ name, gatewayPort }) => `${name} ${gatewayPort}`)).toEqual([
    's1-g1 51821',
    's1-g2 51822',
    's2-g1 51823',
    's2-g2 51824',
  ]);
});

test('a node that has not reported is in no slice and no pool', () => {
  const some = new Map([...reports].filter(([name]) => name !== 's1-w1' && name !== 's2-g1'));
  const world = worldOf(worldObjects(layout, some));
  expect(world.workers.map(({ name }) => name)).toEqual(['s2-w1']);
  expect([...world.pools.values()].flatMap((pool) => pool.gateways.map(({ name }) => name))).not.toContain('s2-g1');
});

test('in a mesh gateways are nodes like others', () => {
  const mesh = layoutOf({ fabric: true, gateways: 1, workers: 1, topology: 'mesh' });
  const world = worldOf(worldObjects(mesh, reports));
  expect(world.pools.size).toBe(0);
  expect(world.workers.map(({ name }) => name)).toEqual(['s1-g1', 's1-w1', 's2-g1', 's2-w1']);
});
