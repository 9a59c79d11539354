import { expect, test } from 'vitest';
import { createGroupIndexes } from '../group-indexes.ts';
import { planFor } from '../../testdata.ts';
import { planRouteObjects } from './route-objects.plan.ts';

const plan = planFor('w1', 'VXLAN', 'netlink');
const links = new Map([
  ['vxlan0', 7],
  ['wg51821', 9],
]);
const objects = planRouteObjects(plan, links, createGroupIndexes());

test('a peer of the site is reached through vxlan0, and each packet brings its far end along', () => {
  expect(objects.routes.find(({ dst }) => dst === '100.65.31.0/24')).toMatchObject({
    table: 252,
    link: 7,
    gateway: '100.65.31.1',
    onlink: true,
    encap: { type: 'ip', id: 1, dst: '10.1.0.31' },
  });
});

test('nobody asks for the MAC of a far end: it follows from its address', () => {
  expect(objects.neighbours).toContainEqual({
    family: 4,
    link: 7,
    address: '100.65.31.1',
    mac: '02:0a:01:00:1f:ff',
    state: 'permanent',
  });
});

test('the MAC is that of the far end’s own address, also where another address leads there', () => {
  const text = JSON.stringify(plan).replaceAll('"remoteIp":"10.1.0.20"', '"remoteIp":"203.0.113.1"');
  const { neighbours } = planRouteObjects(JSON.parse(text) as typeof plan, links, createGroupIndexes());
  expect(neighbours).toContainEqual(expect.objectContaining({ mac: '02:0a:01:00:14:ff' }));
});

test('what lies behind a gateway is reached through a group of next hops', () => {
  const [group] = objects.groups;
  expect(group).toMatchObject({ family: 4, site: 's2' });
  const ids = objects.nexthops.map(({ id }) => id);
  for (const { nexthopId } of group!.members) expect(ids).toContain(nexthopId);
  expect(objects.routes.find(({ dst }) => dst === '100.66.0.0/16')).toMatchObject({ nexthopId: group!.id });
});

test('addresses that nobody has leave by no default route', () => {
  expect(objects.routes.find(({ dst }) => dst === '100.65.0.0/16')).toMatchObject({ type: 'unreachable' });
});

test('a route whose device is missing leads nowhere rather than elsewhere', () => {
  const without = planRouteObjects(plan, new Map(), createGroupIndexes());
  expect(without.groups).toEqual([]);
  expect(without.routes.find(({ dst }) => dst === '100.65.31.0/24')).toMatchObject({ type: 'unreachable' });
});

test('numbers stay the same when the plan is made again', () => {
  const indexes = createGroupIndexes();
  const first = planRouteObjects(plan, links, indexes);
  expect(planRouteObjects(plan, links, createGroupIndexes(indexes.toJSON()))).toEqual(first);
});
