import { AddressSet, containsPrefix, formatPrefix, parsePrefix, SPECIAL_BLOCKS } from '@unbounded/ip';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyConnectedCluster } from '../random-cluster.testdata.ts';
import { cluster, join } from '../testdata.ts';
import { findMember, planNode } from '../node.plan.ts';
import { parseWorld } from '../world/parse-world.ts';
import { networkSites } from '../world/reach.ts';
import type { BoundaryPlan } from '../plan.ts';
import type { TopologyObjects, World } from '../world/world.ts';

const boundaryOf = (objects: TopologyObjects, node: string): BoundaryPlan => {
  const world = parseWorld(objects);
  return planNode(world, { member: findMember(world, node)!, underlayMtuBytes: 1500 }).boundary;
};
const routed = ['192.168.7.0/24'];
const small = cluster({ sites: 2, gateways: 1, workers: 2, protocol: 'VXLAN' });
const withSite = (spec: object, objects: TopologyObjects = small): TopologyObjects => ({
  ...objects,
  sites: objects.sites.map((one) => (one.metadata.name === 's1' ? { ...one, spec: { ...one.spec, ...spec } } : one)),
});
const withRouted = (objects: TopologyObjects = small): TopologyObjects => ({
  ...objects,
  gatewayPools: objects.gatewayPools.map((pool) => ({ ...pool, spec: { ...pool.spec, routedCidrs: routed } })),
});

describe('the boundary of the overlay', () => {
  test('a worker is an exit for nothing, and lets nobody in', () => {
    expect(boundaryOf(withRouted(), 's1-w1')).toEqual({ ownPods: ['100.65.31.0/24'], exits: [], entries: [] });
  });

  test('a gateway is an exit for the nodes on its network and what its pool routes, and lets that in', () => {
    expect(boundaryOf(withRouted(), 's1-g1')).toEqual({
      ownPods: ['100.65.21.0/24'],
      exits: ['10.1.0.0/24', ...routed],
      entries: routed,
    });
  });

  test('a gateway is an exit for the nodes of sites with which its own shares a network', () => {
    const peered = { ...small, sitePeerings: [join('sitePeerings', 'lan', { sites: ['s1', 's2'] })] };
    expect(boundaryOf(peered, 's1-g1').exits).toEqual(['10.1.0.0/24', '10.2.0.0/24']);
  });

  test('natively linked nodes and pods come in', () => {
    const native = withSite({ tunnelProtocol: 'None' }, cluster({ sites: 1, gateways: 1, workers: 2 }));
    expect(boundaryOf(native, 's1-w1').entries).toEqual(
      expect.arrayContaining(['10.1.0.32/32', '100.65.32.0/24', '10.1.0.21/32', '100.65.21.0/24']),
    );
  });

  test('where another CNI plugin connects the pods, they come and go at their node, and by the LAN at the gateway', () => {
    const others = withSite({ manageCniPlugin: false });
    expect(boundaryOf(others, 's1-w1')).toEqual({
      ownPods: ['100.65.0.0/16'],
      exits: ['100.65.31.0/24'],
      entries: ['100.65.31.0/24'],
    });
    expect(boundaryOf(others, 's1-g1').exits).toEqual(['10.1.0.0/24', '100.65.0.0/16']);
  });

  test('what a Site lists comes in at its nodes alone', () => {
    const listed = withSite({ allowedSourceCidrs: ['10.1.0.9/32'] });
    expect(boundaryOf(listed, 's1-w1').entries).toEqual(['10.1.0.9/32']);
    expect(boundaryOf(listed, 's1-g1').entries).toEqual(['10.1.0.9/32']);
    expect(boundaryOf(listed, 's2-g1').entries).toEqual([]);
  });

  test('no loopback, link-local or multicast addresses, whatever objects say', () => {
    const wide = withSite({ allowedSourceCidrs: ['169.254.0.0/15', '10.1.0.9/32'] });
    expect(boundaryOf(wide, 's1-g1').entries).not.toContain('169.254.0.0/15');
  });
});

/** What objects name: nodes' blocks of the networks that the node is in, what its pool routes, and pods of other CNI plugins. */
const named = (
  world: World,
  { site: own, pool }: { readonly site: string; readonly pool: string | undefined },
): AddressSet => {
  const near = [...networkSites(world, own)].flatMap((name) => world.sites.get(name) ?? []);
  return AddressSet.of([
    ...near.flatMap(({ nodeCidrs, podCidrs, manageCni }) => [...nodeCidrs, ...(manageCni ? [] : podCidrs)]),
    ...(world.pools.get(pool ?? '')?.routedCidrs ?? []),
  ]);
};

test('in any cluster no node is an exit for what no object names for it, and no worker for more than its own pods', () => {
  let exits = 0;
  fc.assert(
    fc.property(anyConnectedCluster, (objects) => {
      const world = parseWorld(objects);
      const members = [...world.workers, ...[...world.pools.values()].flatMap(({ gateways }) => gateways)];
      for (const member of members) {
        const { boundary } = planNode(world, { member, underlayMtuBytes: 1500 });
        const found = AddressSet.of(boundary.exits.map(parsePrefix));
        exits += boundary.exits.length;
        expect(found.subtract(named(world, member)).subtract(AddressSet.of(member.podCidrs)).toPrefixes()).toEqual([]);
        if (member.pool === undefined)
          for (const exit of boundary.exits)
            expect(member.podCidrs.some((block) => containsPrefix(block, parsePrefix(exit)))).toBe(true);
        const special = AddressSet.of([...boundary.exits, ...boundary.entries].map(parsePrefix));
        expect(
          special
            .subtract(special.subtract(AddressSet.of(SPECIAL_BLOCKS)))
            .toPrefixes()
            .map(formatPrefix),
        ).toEqual([]);
      }
    }),
    { numRuns: 100 },
  );
  expect(exits).toBeGreaterThan(0);
});
