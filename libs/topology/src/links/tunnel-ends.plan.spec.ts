import { describe, expect, test } from 'vitest';
import { findMember, planNode } from '../node.plan.ts';
import { parseWorld } from '../world/parse-world.ts';
import { cluster, inFamilies, join } from '../testdata.ts';
import type { TopologyObjects } from '../world/world.ts';

const objects = cluster({ sites: 2, gateways: 1, workers: 2 });
const planOf = (some: TopologyObjects, node: string) => {
  const world = parseWorld(some);
  return planNode(world, { member: findMember(world, node)!, underlayMtuBytes: 1500 });
};

describe('where tunnels end', () => {
  test('is at the nodes of all sites and the addresses of gateways, the same for every node', () => {
    const ends = {
      addresses: ['10.1.0.0/24', '10.2.0.0/24', '203.0.113.111/32', '203.0.113.121/32'],
      wireGuardPorts: [51820, 51831, 51841],
    };
    for (const node of ['s1-w1', 's2-w2', 's1-g1']) expect(planOf(objects, node).tunnelEnds).toEqual(ends);
  });

  test('is at the ports of all lanes while any node’s key is not its first', () => {
    const [first, ...slices] = objects.slices;
    const [node, ...nodes] = first!.nodes!;
    const rotated = { ...first!, nodes: [{ ...node!, wireGuardKeyGeneration: 1 }, ...nodes] };
    const { tunnelEnds } = planOf({ ...objects, slices: [rotated, ...slices] }, 's1-w2');
    expect(tunnelEnds.wireGuardPorts).toEqual(
      [51820, 51831, 51841].flatMap((port) => [0, 1, 2, 3].map((lane) => port + 3400 * lane)).sort((a, b) => a - b),
    );
  });
});

describe('from where a node sends tunnel packets', () => {
  test('is its first address of each family', () => {
    expect(planOf(objects, 's1-w1').ownAddresses).toEqual(['10.1.0.31']);
    expect(planOf(inFamilies(objects, '46', '46'), 's1-w1').ownAddresses).toHaveLength(2);
  });

  test('is for the kernel to choose over external addresses only', () => {
    const gatewayPools = ['p1', 'p2'];
    const peering = join('poolPeerings', 'all', { gatewayPools, tunnelProtocol: 'VXLAN' });
    const open = { ...cluster({ sites: 2, gateways: 1, workers: 1, protocol: 'VXLAN' }), poolPeerings: [peering] };
    const externalTo = (some: TopologyObjects, node: string): string[] =>
      planOf(some, node).tunnels.flatMap(({ isExternal, remoteIp }) => (isExternal ? [remoteIp] : []));
    expect(externalTo(open, 's1-g1')).toEqual(['203.0.113.121']);
    expect(externalTo(open, 's1-w1')).toEqual([]);
    expect(externalTo(objects, 's1-g1')).toEqual([]); // WireGuard
  });
});
