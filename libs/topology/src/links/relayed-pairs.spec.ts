import type { Gateway, Mesh } from '@unbounded/crds';
import { firstAddress, hostPrefix } from '@unbounded/ip';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { failureOf, type Network, networkOf } from '../explain/forwarding-simulation.ts';
import type { NodePlan } from '../plan.ts';
import { anyConnectedCluster } from '../random-cluster.testdata.ts';
import { cluster, gateway, join, pool, site, slice, worker } from '../testdata.ts';
import { carries } from '../world/usable.ts';
import type { TopologyObjects } from '../world/world.ts';

/** What one gateway can meet, or states, takes the relay from no other. */

const MESH: Mesh = {
  apiVersion: 'net.unbounded-cloud.io/v1alpha1',
  kind: 'Mesh',
  metadata: { name: 'default' },
  spec: { relay: { provider: 'external', external: { endpoint: 'relay.example.com:3478' } } },
};

const withGateway = (objects: TopologyObjects, name: string, change: Partial<Gateway>): TopologyObjects => ({
  ...objects,
  gatewayPools: objects.gatewayPools.map((one) => ({
    ...one,
    status: { nodes: (one.status?.nodes ?? []).map((node) => (node.name === name ? { ...node, ...change } : node)) },
  })),
});

const inside = (siteIndex: number, index: number): Gateway => ({ ...gateway(siteIndex, index), externalIPs: [] });

/** Two sites of which no gateway can be called from outside, and a third that the first pool serves, all by the relay. */
const hidden: TopologyObjects = {
  ...cluster({ sites: 3, gateways: 0, workers: 1, protocol: 'WireGuard' }),
  gatewayPools: [
    pool('p1', [inside(1, 1), inside(1, 2)], { type: 'Internal' }),
    pool('p2', [inside(2, 1)], { type: 'Internal' }),
  ],
  assignments: [
    join('assignments', 'a1', { sites: ['s1', 's3'], gatewayPools: ['p1'] }),
    join('assignments', 'a2', { sites: ['s2'], gatewayPools: ['p2'] }),
  ],
  poolPeerings: [join('poolPeerings', 'all', { gatewayPools: ['p1', 'p2'] })],
  meshes: [MESH],
};

const relayedPeers = (plan: NodePlan): string[] =>
  plan.wireGuard
    .flatMap(({ peers }) => peers.filter(({ relay }) => relay !== undefined).map(({ node }) => node))
    .sort();
const relayedIn = (objects: TopologyObjects, node: string): string[] =>
  relayedPeers(networkOf(objects).plans.get(node)!);
const membersIn = (objects: TopologyObjects, node: string): object =>
  Object.fromEntries(
    networkOf(objects)
      .plans.get(node)!
      .groups.map(({ name, members }) => [name, members.map(({ node: hop, tier }) => `${tier} ${hop}`)]),
  );

describe('a gateway that moves to another Site', () => {
  const toSecond = withGateway(hidden, 's1-g2', {
    siteName: 's2',
    internalIPs: ['10.2.0.99'],
    podCIDRs: ['100.66.99.0/24'],
  });
  const toThird = withGateway(hidden, 's1-g2', {
    siteName: 's3',
    internalIPs: ['10.3.0.99'],
    podCIDRs: ['100.67.99.0/24'],
  });

  test('takes the relay from no other gateway of its pool', () => {
    expect(relayedIn(hidden, 's1-g1')).toEqual(['s2-g1', 's3-w1']);
    expect(relayedIn(toSecond, 's1-g1')).toEqual(['s2-g1', 's3-w1']);
    expect(relayedIn(toSecond, 's2-g1')).toEqual(['s1-g1']);
    expect(membersIn(toSecond, 's1-g1')).toEqual({ 'site s2 IPv4': ['0 s2-g1'] });
    expect(membersIn(toSecond, 's2-g1')).toEqual(membersIn(hidden, 's2-g1'));
  });

  test('nor from the workers of a site that its pool serves', () => {
    expect(relayedIn(toThird, 's1-g1')).toEqual(['s2-g1', 's3-w1']);
    expect(relayedIn(toThird, 's3-w1')).toEqual(['s1-g1']);
  });

  test('nor by way of a hub that it goes on reaching', () => {
    const hub = pool('p4', [gateway(4, 1)]);
    const objects = {
      ...toSecond,
      sites: [...hidden.sites, site(4, 'WireGuard')],
      gatewayPools: [...toSecond.gatewayPools, hub],
      poolPeerings: [...hidden.poolPeerings, join('poolPeerings', 'hub', { gatewayPools: ['p1', 'p4'] })],
    };
    expect(relayedIn(objects, 's1-g1')).toContain('s2-g1');
  });

  test('nor for pods of a family that it has not', () => {
    const both = (objects: TopologyObjects): TopologyObjects => ({
      ...objects,
      sites: objects.sites.map((own, index) => ({
        ...own,
        spec: {
          ...own.spec,
          podCidrAssignments: [{ cidrBlocks: [`100.${65 + index}.0.0/16`, `fd64:${index + 1}::/32`] }],
        },
      })),
    });
    const ipv6 = ['s1-g1', 's2-g1'].reduce(
      (objects, name, index) =>
        withGateway(objects, name, { podCIDRs: [`100.${65 + index}.21.0/24`, `fd64:${index + 1}:21::/64`] }),
      both(toSecond),
    );
    expect(membersIn(ipv6, 's1-g1')).toMatchObject({ 'site s2 IPv6': ['0 s2-g1'] });
  });
});

describe('pools of which some gateways can be called', () => {
  const [first] = [gateway(1, 1)];
  const open: TopologyObjects = {
    ...hidden,
    gatewayPools: [pool('p1', [first, inside(1, 2)]), hidden.gatewayPools[1]!],
  };

  test('the others meet at the relay, and those that can be called do not', () => {
    expect(relayedIn(open, 's2-g1')).toEqual(['s1-g1', 's1-g2']);
    const { wireGuard } = networkOf(open).plans.get('s2-g1')!;
    const endpoints = wireGuard.flatMap(({ peers }) => peers.map(({ node, endpoint }) => [node, endpoint]));
    expect(Object.fromEntries(endpoints)).toMatchObject({ 's1-g1': '203.0.113.111:51841', 's1-g2': undefined });
  });

  test('what one of them no longer states brings no other pools to the relay', () => {
    const third = pool('p3', [inside(3, 1)], { type: 'Internal' });
    const joined = {
      ...open,
      gatewayPools: [...open.gatewayPools, third],
      poolPeerings: [join('poolPeerings', 'all', { gatewayPools: ['p1', 'p2', 'p3'] })],
    };
    expect(relayedPeers(networkOf(joined).plans.get('s3-g1')!)).not.toContain('s2-g1');
    expect(relayedPeers(networkOf(joined).plans.get('s2-g1')!)).not.toContain('s3-g1');
  });

  test('a gateway without a key joins nobody, as little as it links with them', () => {
    const keyless = { ...first, wireGuardPublicKey: '' };
    const names = ['p1', 'p2', 'p3'];
    const [, second] = hidden.gatewayPools;
    const objects = {
      ...hidden,
      gatewayPools: [pool('p1', [keyless, inside(1, 2)]), second!, pool('p3', [inside(3, 1)], { type: 'Internal' })],
      poolPeerings: [join('poolPeerings', 'all', { gatewayPools: names })],
    };
    expect(relayedIn(objects, 's2-g1')).toEqual(['s1-g2', 's3-g1']);
  });
});

test('a site whose pool has one gateway of two that can be called goes on being served by other pools', () => {
  const objects: TopologyObjects = {
    ...hidden,
    slices: [slice(1, [worker(1, 1)]), slice(2, [worker(2, 1)]), slice(3, [worker(3, 1)])],
    assignments: [...hidden.assignments, join('assignments', 'a3', { sites: ['s3'], gatewayPools: ['p2'] })],
    poolPeerings: [],
  };
  const moved = withGateway(objects, 's1-g2', {
    siteName: 's3',
    internalIPs: ['10.3.0.99'],
    podCIDRs: ['100.67.99.0/24'],
  });
  expect(relayedIn(objects, 's3-w1')).toEqual(['s1-g1', 's1-g2', 's2-g1']);
  expect(relayedIn(moved, 's3-w1')).toEqual(['s1-g1', 's2-g1']);
});

/** The network in which a node answers nobody: health takes it out of all groups. */
const withoutNode = ({ plans, ...network }: Network, name: string): Network => ({
  ...network,
  plans: new Map(
    [...plans].map(([node, plan]) => [
      node,
      {
        ...plan,
        groups: plan.groups.map((group) => ({ ...group, members: group.members.filter((hop) => hop.node !== name) })),
      },
    ]),
  ),
});

/** Whether a gateway forwards pods of a family is not asked where it stands between two others. */
const familiesOfAll = ({ world }: Network): (4 | 6)[] => {
  const gateways = [...world.pools.values()].flatMap((one) => one.gateways);
  return ([4, 6] as const).filter((family) => gateways.every((one) => carries(one, family)));
};

const meetingPairs = (network: Network, families: readonly (4 | 6)[]): string[] =>
  network.world.workers.flatMap((from) =>
    network.world.workers.flatMap((to) =>
      families.flatMap((family) => {
        const [source, target] = [from, to].map(({ podCidrs }) => podCidrs.find((own) => own.family === family));
        if (from === to || !source || !target) return [];
        const [packet, answer] = [hostPrefix(firstAddress(source)), hostPrefix(firstAddress(target))];
        return failureOf(network, [from.name], answer, packet) === undefined
          ? [`${from.name} > ${to.name} IPv${family}`]
          : [];
      }),
    ),
  );

/** The gateways of a pool stand in one site: of pools whose gateways differ already a single one can be what decides. */
const anyAlike = anyConnectedCluster.filter(({ gatewayPools }) =>
  gatewayPools.every(({ status }) => new Set((status?.nodes ?? []).map(({ siteName }) => siteName)).size < 2),
);

const anyMove = anyAlike
  .filter(({ gatewayPools }) => gatewayPools.some(({ status }) => (status?.nodes ?? []).length > 1))
  .chain((objects) =>
    fc.record({
      objects: fc.constant({ ...objects, meshes: [MESH] }),
      pool: fc.constantFrom(...objects.gatewayPools.filter(({ status }) => (status?.nodes ?? []).length > 1)),
      which: fc.nat(2),
      to: fc.constantFrom(...objects.sites),
      callable: fc.array(fc.constantFrom(false, false, false, true), { minLength: 5, maxLength: 5 }),
      states: fc.boolean(),
    }),
  );

test('whatever site one gateway of several moves to and whatever it states, who met without it goes on meeting', () => {
  let seen = 0;
  fc.assert(
    fc.property(anyMove, ({ objects, pool: { status }, which, to, callable, states }) => {
      const { nodes = [] } = status!;
      const { name } = nodes[which % nodes.length]!;
      const before: TopologyObjects = {
        ...objects,
        gatewayPools: objects.gatewayPools.map((one, index) => ({
          ...one,
          status: {
            nodes: (one.status?.nodes ?? []).map((node) => (callable[index] ? node : { ...node, externalIPs: [] })),
          },
        })),
      };
      const index = to.metadata.name.slice(1);
      const after = withGateway(before, name, {
        siteName: to.metadata.name,
        internalIPs: to.spec.nodeCidrs.map((block) =>
          block.includes(':') ? `fd00:${index}::250` : `10.${index}.0.250`,
        ),
        externalIPs: states ? ['203.0.113.250', '2001:db8::250'] : [],
        podCIDRs: to.spec.podCidrAssignments
          .flatMap(({ cidrBlocks }) => cidrBlocks)
          .map((block) => (block.includes(':') ? `fd64:${index}:250::/64` : `100.${64 + Number(index)}.250.0/24`)),
      });
      const now = networkOf(after);
      const families = familiesOfAll(networkOf(before)).filter((family) => familiesOfAll(now).includes(family));
      const pairs = meetingPairs(withoutNode(networkOf(before), name), families);
      seen += pairs.length;
      expect(meetingPairs(withoutNode(now, name), families)).toEqual(expect.arrayContaining(pairs));
    }),
    { numRuns: 150 },
  );
  expect(seen).toBeGreaterThan(0);
}, 120_000);
