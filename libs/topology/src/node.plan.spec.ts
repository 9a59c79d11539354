import { containsPrefix, formatPrefix, parsePrefix } from '@unbounded/ip';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findMember, planNode } from './node.plan.ts';
import { parseWorld } from './world/parse-world.ts';
import type { NodePlan } from './plan.ts';
import { cluster, type ClusterShape, gateway, join, pool, site, slice, worker } from './testdata.ts';
import type { TopologyObjects } from './world/world.ts';

const planOf = (objects: TopologyObjects, node: string): NodePlan => {
  const world = parseWorld(objects);
  return planNode(world, { member: findMember(world, node)!, underlayMtuBytes: 1500 });
};
const nodesOf = (objects: TopologyObjects): string[] => {
  const world = parseWorld(objects);
  return [...world.workers, ...[...world.pools.values()].flatMap(({ gateways }) => gateways)].map(({ name }) => name);
};
const twoSites = cluster({ sites: 2, gateways: 1, workers: 2, protocol: 'VXLAN' });

const shapes: fc.Arbitrary<ClusterShape> = fc.record({
  sites: fc.integer({ min: 1, max: 4 }),
  gateways: fc.integer({ min: 1, max: 3 }),
  workers: fc.integer({ min: 0, max: 3 }),
  protocol: fc.constantFrom('Auto', 'WireGuard', 'VXLAN', 'GENEVE', 'IPIP', 'None'),
});

/** Where a packet to an address goes: by the longest prefix. */
const nextNodes = (plan: NodePlan, destination: string): readonly string[] => {
  const target = parsePrefix(destination);
  const [best] = plan.blocks
    .filter(({ prefix }) => containsPrefix(parsePrefix(prefix), target))
    .sort((a, b) => parsePrefix(b.prefix).length - parsePrefix(a.prefix).length);
  if (best === undefined || best.to === 'pending') return [];
  const { to } = best;
  if ('gateways' in to) return to.gateways;
  if ('nextHop' in to) return [to.nextHop.node];
  const { members } = plan.groups.find(({ name }) => name === to.group)!;
  return members.filter(({ tier }) => tier === 0).map(({ node }) => node);
};

describe('the plan of a worker', () => {
  const plan = planOf(twoSites, 's1-w1');

  test('a peer of its site is reached directly', () => {
    expect(plan.blocks).toContainEqual({
      prefix: '100.65.32.0/24',
      to: {
        nextHop: {
          ...{ protocol: 'VXLAN', node: 's1-w2', remoteIp: '10.1.0.32' },
          ...{ peerIp: '10.1.0.32', overlayIp: '100.65.32.1' },
        },
      },
      mtuBytes: 1420,
    });
  });

  test('pods and nodes of the other site go to the group of its gateways', () => {
    const toGroups = plan.blocks.filter(({ to }) => typeof to === 'object' && 'group' in to);
    expect(toGroups.map(({ prefix }) => prefix)).toEqual(['10.2.0.0/24', '100.66.0.0/16']);
    expect(plan.groups).toEqual([
      {
        name: 'site s2 IPv4',
        family: 4,
        site: 's2',
        members: [
          {
            ...{ protocol: 'VXLAN', node: 's1-g1', remoteIp: '10.1.0.21' },
            ...{ peerIp: '10.1.0.21', overlayIp: '100.65.21.1', tier: 0 },
          },
        ],
      },
    ]);
  });

  test('its own site’s unused addresses never go to the default route', () => {
    expect(plan.contained).toContain('100.65.0.0/16');
  });

  test('a gateway stands once in a group, also where a pool routes a block that is a site’s already', () => {
    const routedCidrs = ['10.2.0.0/24', '100.66.0.0/16', '192.168.0.0/16'];
    const objects = {
      ...twoSites,
      gatewayPools: [twoSites.gatewayPools[0]!, pool('p2', [gateway(2, 1)], { routedCidrs })],
    };
    for (const node of ['s1-w1', 's1-g1']) {
      const { groups, blocks } = planOf(objects, node);
      expect(groups.length).toBeGreaterThan(0);
      for (const { members } of groups) expect(members.map((member) => member.node)).toEqual([members[0]?.node]);
      expect(new Set(blocks.map(({ prefix }) => prefix)).size).toBe(blocks.length);
    }
  });

  test('its own nodes are reached by the underlay', () => {
    expect(plan.blocks.map(({ prefix }) => prefix)).not.toContain('10.1.0.0/24');
    expect(plan.contained).not.toContain('10.1.0.0/24');
    expect(plan.direct).toContain('10.1.0.0/24');
  });

  test('its size does not grow with the nodes of other sites', () => {
    const sizeWith = (workers: number): number => {
      const objects = cluster({ sites: 3, gateways: 2, workers: 1 });
      const grown = {
        ...objects,
        slices: [
          objects.slices[0]!,
          slice(
            2,
            Array.from({ length: workers }, (_, i) => worker(2, i + 1)),
          ),
        ],
      };
      return JSON.stringify(planOf(grown, 's1-w1')).length;
    };
    expect(sizeWith(60)).toBe(sizeWith(1));
  });
});

describe('the plan of a gateway', () => {
  const plan = planOf(twoSites, 's1-g1');

  test('each gateway of another pool has an interface of its own, on crossed ports', () => {
    expect(
      plan.wireGuard.map(({ name, listenPort, peers }) => ({ name, listenPort, endpoint: peers[0]?.endpoint })),
    ).toEqual([{ name: 'wg51841', listenPort: 51841, endpoint: '203.0.113.121:51831' }]);
    expect(planOf(twoSites, 's2-g1').wireGuard[0]).toMatchObject({
      name: 'wg51831',
      peers: [{ endpoint: '203.0.113.111:51841' }],
    });
  });

  test('the other site’s pods and nodes may come from there, and our own echo', () => {
    expect(plan.wireGuard[0]?.peers[0]?.allowedIps).toEqual(['10.2.0.0/24', '100.65.21.0/32', '100.66.0.0/16']);
  });

  test('blocks routed by its own pool are left to its own routes', () => {
    const objects = {
      ...twoSites,
      gatewayPools: [pool('p1', [gateway(1, 1)], { routedCidrs: ['192.168.0.0/16'] }), twoSites.gatewayPools[1]!],
    };
    expect(planOf(objects, 's1-g1').blocks.map(({ prefix }) => prefix)).not.toContain('192.168.0.0/16');
    expect(planOf(objects, 's1-g1').contained).not.toContain('192.168.0.0/16');
    expect(planOf(objects, 's1-g1').direct).toContain('192.168.0.0/16');
    expect(nextNodes(planOf(objects, 's2-w1'), '192.168.7.0/24')).toEqual(['s2-g1']);
    expect(nextNodes(planOf(objects, 's2-g1'), '192.168.7.0/24')).toEqual(['s1-g1']);
  });
});

describe('WireGuard inside a site', () => {
  const objects = cluster({ sites: 1, gateways: 1, workers: 2, protocol: 'WireGuard' });

  test('the ports of both ends of every link match', () => {
    expect(
      planOf(objects, 's1-w1').wireGuard.map(({ name, peers }) => [name, peers.map(({ endpoint }) => endpoint)]),
    ).toEqual([
      ['wg51820', ['10.1.0.32:51820']],
      ['wg51831', ['10.1.0.21:51820']],
    ]);
    expect(
      planOf(objects, 's1-g1').wireGuard.map(({ name, peers }) => [name, peers.map(({ endpoint }) => endpoint)]),
    ).toEqual([['wg51820', ['10.1.0.31:51831', '10.1.0.32:51831']]]);
  });

  test('a gateway without a port yet is told, and its blocks are contained', () => {
    const { gatewayWireguardPort: _, ...portless } = gateway(1, 1);
    const plan = planOf({ ...objects, gatewayPools: [pool('p1', [portless])] }, 's1-w1');
    expect(plan.problems.map(({ reason }) => reason)).toContain('GatewayPortMissing');
    expect(nextNodes(plan, '100.65.21.0/24')).toEqual([]);
    const block = parsePrefix('100.65.21.0/24');
    expect(plan.contained.some((prefix) => containsPrefix(parsePrefix(prefix), block))).toBe(true);
    expect(plan.blocks).toContainEqual(expect.objectContaining({ prefix: '100.65.21.0/24', to: 'pending' }));
  });
});

describe('None', () => {
  test('blocks are routed to the neighbours’ own addresses, and no pod address is masqueraded towards them', () => {
    const plan = planOf(cluster({ sites: 2, gateways: 1, workers: 2, protocol: 'None' }), 's1-w1');
    expect(plan.blocks).toContainEqual({ prefix: '100.65.32.0/24', to: { gateways: ['10.1.0.32'] }, mtuBytes: 1420 });
    expect(plan.blocks).toContainEqual({ prefix: '10.2.0.0/24', to: { gateways: ['10.1.0.21'] }, mtuBytes: 1420 });
    expect(plan.tunnels).toEqual([]);
    expect(plan.masquerade.exceptTo).toEqual(['10.2.0.0/24', '100.65.0.0/16', '100.66.0.0/16']);
  });
});

test('a site without a gateway of its own is served by another site’s, from behind its NAT', () => {
  const objects: TopologyObjects = {
    sites: [site(1), site(2)],
    slices: [slice(1, [worker(1, 1)]), slice(2, [worker(2, 1)])],
    gatewayPools: [pool('p1', [gateway(1, 1)])],
    sitePeerings: [],
    assignments: [join('assignments', 'a', { sites: ['s1', 's2'], gatewayPools: ['p1'] })],
    poolPeerings: [],
    meshes: [],
  };
  expect(planOf(objects, 's2-w1').wireGuard[0]?.peers[0]).toMatchObject({
    endpoint: '203.0.113.111:51820',
    persistentKeepaliveSeconds: 25,
  });
  const atGateway = planOf(objects, 's1-g1').wireGuard[0]?.peers[0];
  expect(atGateway).toMatchObject({ node: 's2-w1', allowedIps: ['10.2.0.31/32', '100.66.31.0/24'] });
  expect(atGateway?.endpoint).toBeUndefined();
});

test('a block that is none is told by name, and the rest of the plan stands', () => {
  const broken = { ...site(2), spec: { ...site(2).spec, nodeCidrs: ['10.2.0.1/24'] } };
  const plan = planOf({ ...twoSites, sites: [site(1, 'VXLAN'), broken] }, 's1-w1');
  expect(plan.problems[0]).toEqual({
    reason: 'InvalidCIDR',
    message: 'Site s2 spec.nodeCidrs: "10.2.0.1/24" has host bits set: the block that holds it is 10.2.0.0/24',
  });
  expect(nextNodes(plan, '100.66.31.0/24')).toEqual(['s1-g1']);
});

test('in any cluster of joined sites every pair of nodes has a path without a loop, of at most two gateways', () => {
  fc.assert(
    fc.property(shapes, (shape) => {
      const objects = cluster(shape);
      const world = parseWorld(objects);
      const byIp = new Map(nodesOf(objects).map((node) => [findMember(world, node)!.internalIps[0]!, node]));
      const plans = new Map(nodesOf(objects).map((node) => [node, planOf(objects, node)]));
      for (const from of plans.keys()) {
        for (const to of plans.keys()) {
          if (from === to) continue;
          const target = formatPrefix(findMember(world, to)!.podCidrs[0]!);
          let at = [from];
          for (let hops = 0; hops < 4 && !at.every((node) => node === to); hops++) {
            at = at.flatMap((node) =>
              node === to ? [to] : nextNodes(plans.get(node)!, target).map((next) => byIp.get(next) ?? next),
            );
            expect(at.length, `${from} -> ${to}`).toBeGreaterThan(0);
          }
          expect([...new Set(at)]).toEqual([to]);
        }
      }
    }),
    { numRuns: 20 },
  );
});
