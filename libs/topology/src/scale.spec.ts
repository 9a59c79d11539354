import { expect, test } from 'vitest';
import { findMember, planNode } from './node.plan.ts';
import { parseWorld } from './world/parse-world.ts';
import type { NodePlan } from './plan.ts';
import { cluster, sizeOf, slice, worker } from './testdata.ts';

/** How plans grow. Sizes are counted in what the kernel holds, so that no machine's speed decides. */

const planIn = (shape: { sites: number; gateways: number; workers: number }, node: string): NodePlan => {
  const world = parseWorld(cluster({ ...shape, protocol: 'VXLAN' }));
  return planNode(world, { member: findMember(world, node)!, underlayMtuBytes: 1500 });
};

test('a worker’s plan does not grow with the nodes of other sites', () => {
  const objects = cluster({ sites: 20, gateways: 2, workers: 5 });
  const nodes = Array.from({ length: 60 }, (_, i) => worker(2, i + 1));
  const grown = parseWorld({
    ...objects,
    slices: objects.slices.map((own) => (own.siteName === 's2' ? slice(2, nodes) : own)),
  });
  const local = { member: findMember(grown, 's1-w1')!, underlayMtuBytes: 1500 };
  const { problems: _, ...plan } = planNode(grown, local);
  const { problems: __, ...before } = planNode(parseWorld(objects), local);
  expect(plan).toEqual(before);
});

test('of 100 sites with 50 nodes a worker holds its own site’s nodes, and a few things for each other site', () => {
  const plan = planIn({ sites: 100, gateways: 2, workers: 48 }, 's7-w3');
  expect(plan.blocks).toHaveLength(47 + 2 + 99 * 2);
  expect(plan.groups).toHaveLength(99);
  expect(plan.probes).toHaveLength(47 + 2);
  expect(sizeOf(plan)).toBeLessThan(49 + 8 * 100);
});

test('of 100 peered pools a gateway holds its own workers, and a few things for each other gateway and site', () => {
  const plan = planIn({ sites: 100, gateways: 2, workers: 48 }, 's7-g1');
  expect(plan.wireGuard).toHaveLength(99 * 2);
  expect(plan.groups).toHaveLength(99);
  expect(Math.max(...plan.groups.map(({ members }) => members.length))).toBeLessThanOrEqual(16);
  expect(sizeOf(plan)).toBeLessThan(50 * 4 + 35 * 100);
});

test('a gateway’s plan grows with sites by the same for each', () => {
  const [small, middle, large] = [20, 40, 60].map((sites) =>
    sizeOf(planIn({ sites, gateways: 2, workers: 2 }, 's7-g1')),
  );
  expect(large! - middle!).toBe(middle! - small!);
});
