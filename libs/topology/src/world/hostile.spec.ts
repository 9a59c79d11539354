import type { SiteNode } from '@unbounded/crds';
import { AddressSet, containsPrefix, formatAddress, hostPrefix, parseAddress, parsePrefix } from '@unbounded/ip';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { networkOf } from '../explain/forwarding-simulation.ts';
import { findMember, planNode } from '../node.plan.ts';
import { parseWorld } from './parse-world.ts';
import type { NodePlan } from '../plan.ts';
import { anyCluster } from '../random-cluster.testdata.ts';
import { keyOf } from '../testdata.ts';
import type { TopologyObjects } from './world.ts';

/** One node states whatever it likes. The plans of all others must be those of the world without it, but for itself. */

const NAME = 'aa-hostile';

interface Values {
  readonly keys: readonly string[];
  readonly addresses: readonly string[];
  readonly blocks: readonly string[];
}

/** Everything that any other node, site or pool has, and what nobody should state. */
const valuesIn = ({ sites, slices, gatewayPools }: TopologyObjects): Values => {
  const nodes = [
    ...slices.flatMap((one) => one.nodes ?? []),
    ...gatewayPools.flatMap((one) => one.status?.nodes ?? []),
  ];
  const external = gatewayPools.flatMap((one) => (one.status?.nodes ?? []).flatMap((node) => node.externalIPs ?? []));
  const podBlocks = nodes.flatMap((node) => node.podCIDRs ?? []);
  const hosts = podBlocks.map((block) => block.replace(/0\/24$/, '7').replace(/::\/64$/, '::7'));
  return {
    keys: [
      ...nodes.flatMap((node) => node.wireGuardPublicKey ?? []),
      keyOf('hostile'),
      ...['x', '', 'A'.repeat(65), `${'A'.repeat(43)}=`],
    ],
    addresses: [
      ...nodes.flatMap((node) => node.internalIPs ?? []),
      ...external,
      ...hosts,
      ...['8.8.8.8', '10.1.0.250', 'fd00:1::250', '127.0.0.1', '::1', 'fe80::1', 'none', '203.0.113.99'],
    ],
    blocks: [
      ...podBlocks,
      ...hosts.map((host) => `${host}/${host.includes(':') ? 128 : 32}`),
      ...sites.flatMap(({ spec }) => [...spec.nodeCidrs, ...spec.podCidrAssignments.flatMap((one) => one.cidrBlocks)]),
      ...[
        '0.0.0.0/0',
        '::/0',
        '100.65.128.0/17',
        '100.65.200.0/24',
        'fd64:1:200::/64',
        '198.51.100.0/24',
        '127.0.0.0/8',
      ],
    ],
  };
};

const anyHostile = anyCluster.chain((objects) => {
  const { keys, addresses, blocks } = valuesIn(objects);
  const few = (values: readonly string[]) => fc.array(fc.constantFrom(...values), { maxLength: 4 });
  const node: fc.Arbitrary<SiteNode> = fc.record({
    name: fc.constantFrom(NAME, 'zz-hostile'),
    wireGuardPublicKey: fc.constantFrom(...keys),
    wireGuardNextPublicKey: fc.constantFrom(...keys),
    wireGuardKeyGeneration: fc.nat(3),
    internalIPs: few(addresses),
    podCIDRs: few(blocks),
    tunnelProtocols: fc.constantFrom([], ['VXLAN'], ['WireGuard'], ['nonsense']),
  });
  return fc.record({
    objects: fc.constant(objects),
    node,
    site: fc.nat(4),
  });
});

const withNode = (objects: TopologyObjects, node: SiteNode, site: number): TopologyObjects => ({
  ...objects,
  slices: objects.slices.map((one, index) =>
    index === site % objects.slices.length ? { ...one, nodes: [node, ...(one.nodes ?? [])] } : one,
  ),
});

/** The plan without what the world of `grants` leaves the node: it may have links, but nothing that is another's. */
const without = (plan: NodePlan, name: string, grants: NodePlan): object => {
  const held = grants.holdings.find(({ node }) => node === name);
  const own = new Set(held?.blocks);
  const addresses = new Set((held?.addresses ?? []).map((ip) => `${ip}/${ip.includes(':') ? 128 : 32}`));
  const isOthers = (prefix: string): boolean =>
    !own.has(prefix) &&
    !addresses.has(prefix) &&
    ![...own].some((block) => containsPrefix(parsePrefix(block), parsePrefix(prefix)));
  const interfaces = plan.wireGuard.flatMap((wg) =>
    wg.peers.filter(({ node }) => node !== name).map((peer) => [wg.name, wg.listenPort, peer]),
  );
  return {
    blocks: plan.blocks.filter(({ prefix }) => isOthers(prefix)),
    contained: plan.contained,
    direct: plan.direct,
    groups: plan.groups.filter((group) => !group.members.some(({ node }) => node === name)),
    interfaces,
    probes: plan.probes.filter(({ node }) => node !== name),
    tunnels: plan.tunnels.filter(({ node }) => node !== name),
    masquerade: plan.masquerade.sources,
    servedSites: plan.servedSites,
    mtuBytes: plan.mtuBytes,
  };
};

test('whatever keys, addresses and blocks one node states, the others keep theirs and the paths between them', () => {
  fc.assert(
    fc.property(anyHostile, ({ objects, node, site }) => {
      const before = networkOf(objects);
      const hostile = withNode(objects, node, site);
      for (const [name, plan] of before.plans) {
        const world = parseWorld(hostile, plan.holdings);
        const member = findMember(world, name)!;
        const after = planNode(world, { member, underlayMtuBytes: 1500 });
        expect(without(after, node.name, after), `${name} with ${JSON.stringify(node)}`).toEqual(
          without(plan, node.name, after),
        );
      }
    }),
    { numRuns: 40 },
  );
});

test('also in the first plan nothing of another node leads to it', () => {
  fc.assert(
    fc.property(anyHostile, ({ objects, node, site }) => {
      const { plans } = networkOf(withNode(objects, node, site));
      const nodes = [
        ...objects.slices.flatMap((one) => one.nodes ?? []),
        ...objects.gatewayPools.flatMap((one) => one.status?.nodes ?? []),
      ];
      const others = nodes.flatMap((one) => [
        ...(one.podCIDRs ?? []).map(parsePrefix),
        ...(one.internalIPs ?? []).map((ip) => hostPrefix(parseAddress(ip))),
      ]);
      for (const [name, plan] of plans) {
        if (name === node.name) continue;
        const led = [
          ...plan.blocks.flatMap(({ prefix, to }) =>
            typeof to === 'object' && 'nextHop' in to && to.nextHop.node === node.name ? [prefix] : [],
          ),
          ...plan.wireGuard.flatMap(({ peers }) =>
            peers.flatMap((peer) => (peer.node === node.name ? peer.allowedIps : [])),
          ),
          ...plan.tunnels.flatMap((tunnel) => (tunnel.node === node.name ? tunnel.sources : [])),
        ];
        for (const prefix of led)
          for (const other of others)
            expect(
              containsPrefix(other, parsePrefix(prefix)) || containsPrefix(parsePrefix(prefix), other),
              `${name}: ${prefix}`,
            ).toBe(false);
      }
    }),
    { numRuns: 30 },
  );
});

const setOf = (prefixes: readonly string[]): AddressSet => AddressSet.of(prefixes.map(parsePrefix));

/** A gateway that is one of the cluster's, with external addresses of its choice: what controllers refuse, too. */
const anyHostileGateway = anyCluster
  .filter(({ gatewayPools }) => gatewayPools.some(({ status }) => (status?.nodes ?? []).length > 0))
  .chain((objects) => {
    const gateways = objects.gatewayPools.flatMap(({ status }) => (status?.nodes ?? []).map(({ name }) => name));
    const { addresses } = valuesIn(objects);
    const more = objects.sites.flatMap(({ spec }) =>
      [...spec.nodeCidrs, ...spec.podCidrAssignments.flatMap(({ cidrBlocks }) => cidrBlocks)].map((text) => {
        const { family, address } = parsePrefix(text);
        return formatAddress({ family, value: address + 9n });
      }),
    );
    return fc.record({
      objects: fc.constant(objects),
      name: fc.constantFrom(...gateways),
      stated: fc.array(fc.constantFrom(...addresses, ...more), { minLength: 1, maxLength: 4 }),
    });
  });

test('whatever external addresses a gateway states, no packet for pods leaves in the clear for it, nor comes in by no tunnel', () => {
  fc.assert(
    fc.property(anyHostileGateway, ({ objects, name, stated }) => {
      const hostile: TopologyObjects = {
        ...objects,
        gatewayPools: objects.gatewayPools.map((one) => ({
          ...one,
          ...(one.status?.nodes
            ? {
                status: {
                  ...one.status,
                  nodes: one.status.nodes.map((node) => (node.name === name ? { ...node, externalIPs: stated } : node)),
                },
              }
            : {}),
        })),
      };
      const before = networkOf(objects);
      const after = networkOf(hostile);
      const claimed = setOf(
        stated.filter((text) => text !== 'none').map((text) => `${text}/${text.includes(':') ? 128 : 32}`),
      );
      for (const [node, plan] of before.plans) {
        if (node === name) continue;
        const now = after.plans.get(node)!;
        const managed = objects.sites.filter(({ spec }) => spec.manageCniPlugin !== false); // others may have native routes
        const ours = setOf(managed.flatMap(({ spec }) => spec.podCidrAssignments.flatMap((one) => one.cidrBlocks)));
        const common = (set: AddressSet): AddressSet => set.subtract(set.subtract(ours));
        const pods = common(setOf(plan.masquerade.sources));
        const isLost = (set: AddressSet, by: AddressSet): string =>
          JSON.stringify(set.subtract(claimed).subtract(by).toPrefixes(), (_, value: unknown) =>
            typeof value === 'bigint' ? value.toString() : value,
          );
        const where = `${node} with ${JSON.stringify(stated)} of ${name}`;
        expect(isLost(pods, setOf(now.masquerade.sources)), `forged sources at ${where}`).toBe('[]');
        expect(isLost(pods, setOf(now.masquerade.exceptTo)), `masqueraded at ${where}`).toBe('[]');
        const overlayOf = ({ blocks, contained }: NodePlan): string[] => [
          ...blocks.filter(({ use }) => use === undefined).map(({ prefix }) => prefix),
          ...contained,
        ];
        const routed = setOf(overlayOf(plan));
        const kept = setOf([...overlayOf(now), ...now.direct, ...(now.withheld ?? [])]);
        expect(isLost(common(routed), kept), `in the clear at ${where}`).toBe('[]');
      }
    }),
    { numRuns: 40 },
  );
});
