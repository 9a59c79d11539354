import type { Gateway } from '@unbounded/crds';
import { firstAddress, hostPrefix, parseAddress, type Prefix } from '@unbounded/ip';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { failureOf, type Network, networkOf } from '../explain/forwarding-simulation.ts';
import { anyConnectedCluster } from '../random-cluster.testdata.ts';
import { cluster, gateway, join, pool } from '../testdata.ts';
import type { TopologyObjects } from '../world/world.ts';

/** A site without gateways and with IPv4 alone, and a gateway of its pool that can be called by IPv6 alone. */

const onlyIpv6 = (index: number): Gateway => ({ ...gateway(1, index), externalIPs: [`2001:db8::${index}`] });

const base = cluster({ sites: 3, gateways: 1, workers: 1, protocol: 'WireGuard' });
const objectsOf = (...gateways: readonly Gateway[]): TopologyObjects => ({
  ...base,
  gatewayPools: [pool('p1', gateways), base.gatewayPools[1]!],
  assignments: [
    join('assignments', 'a1', { sites: ['s1', 's3'], gatewayPools: ['p1'] }),
    join('assignments', 'a2', { sites: ['s2'], gatewayPools: ['p2'] }),
  ],
  poolPeerings: [join('poolPeerings', 'all', { gatewayPools: ['p1', 'p2'] })],
});
const oneCannot = objectsOf(gateway(1, 1), onlyIpv6(2));
const twoCannot = objectsOf(gateway(1, 1), onlyIpv6(2), onlyIpv6(3));

const podOf = ({ members }: Network, node: string): Prefix => hostPrefix(firstAddress(members.get(node)!.podCidrs[0]!));
const groupsIn = (objects: TopologyObjects, node: string): object =>
  Object.fromEntries(
    networkOf(objects)
      .plans.get(node)!
      .groups.map(({ name, members }) => [name, members.map((hop) => `${hop.tier} ${hop.node}`)]),
  );

describe('a gateway that cannot link with the nodes of a site that its pool serves', () => {
  test('does not say that it serves it', () => {
    const { plans } = networkOf(oneCannot);
    expect(plans.get('s1-g1')!.servedSites).toEqual(['s1', 's3']);
    expect(plans.get('s1-g2')!.servedSites).toEqual(['s1']);
  });

  test('hands on what still comes to those of its pool that can, as a way round that it does not report', () => {
    expect(groupsIn(oneCannot, 's1-g2')).toMatchObject({ 'site s3 IPv4': ['1 s1-g1'] });
    expect(groupsIn(twoCannot, 's1-g2')).toMatchObject({ 'site s3 IPv4': ['1 s1-g1'] });
    expect(groupsIn(twoCannot, 's1-g3')).toMatchObject({ 'site s3 IPv4': ['1 s1-g1'] });
    expect(groupsIn(twoCannot, 's1-g1')).not.toHaveProperty('site s3 IPv4');
  });

  test.each([
    ['one', oneCannot],
    ['two', twoCannot],
  ])('%s: pods and nodes of the site are reached by whatever gateway, without a loop', (_, objects) => {
    const network = networkOf(objects);
    const source = podOf(network, 's2-w1');
    for (const entry of [...network.members.values()].filter(({ pool: own }) => own === 'p1')) {
      expect(
        failureOf(network, ['s1-w1', entry.name], podOf(network, 's3-w1'), podOf(network, 's1-w1')),
      ).toBeUndefined();
      for (const target of [podOf(network, 's3-w1'), hostPrefix(parseAddress('10.3.0.31'))])
        expect(failureOf(network, [entry.name], target, source), entry.name).toBeUndefined();
    }
    expect(failureOf(network, ['s3-w1'], source, podOf(network, 's3-w1'))).toBeUndefined();
  });

  test('locators of the site go the same way', () => {
    const withLocators = {
      ...oneCannot,
      gatewayPools: oneCannot.gatewayPools.map((one) => ({
        ...one,
        status: {
          nodes: (one.status?.nodes ?? []).map((node, index) => ({
            ...node,
            l2Locator: `fd10:0:0:${node.siteName === 's1' ? 1 : 2}00${index}::/64`,
            features: ['locators'],
          })),
        },
      })),
      sites: oneCannot.sites.map((one, index) => ({
        ...one,
        status: { l2LocatorBlock: `fd10:0:0:${index + 1}000::/52` },
      })),
    } as TopologyObjects;
    const { groups } = networkOf(withLocators).plans.get('s1-g2')!;
    const way = groups.find(({ name }) => name.startsWith('locators of site s3'));
    expect(way?.members.map((hop) => `${hop.tier} ${hop.node}`)).toEqual(['1 s1-g1']);
  });
});

test('a pool of which no gateway can link with a site does not serve it', () => {
  const { plans } = networkOf(objectsOf(onlyIpv6(1), onlyIpv6(2)));
  for (const node of ['s1-g1', 's1-g2']) expect(plans.get(node)!.servedSites).toEqual(['s1']);
  expect(plans.get('s2-g1')!.groups.map(({ site }) => site)).not.toContain('s3');
});

test('with a relay it links with them there', () => {
  const meshes = [
    {
      apiVersion: 'net.unbounded-cloud.io/v1alpha1',
      kind: 'Mesh',
      metadata: { name: 'default' },
      spec: { relay: { provider: 'external', external: { endpoint: 'relay.example.com:3478' } } },
    },
  ] as const;
  const { plans } = networkOf({ ...oneCannot, meshes: [...meshes] });
  expect(plans.get('s1-g2')!.servedSites).toEqual(['s1', 's3']);
  expect(plans.get('s3-w1')!.groups.map(({ members }) => members.map(({ node }) => node))).toContainEqual([
    's1-g1',
    's1-g2',
  ]);
});

/** Gateways that can call by IPv4 alone, by IPv6 alone, or are called by neither. */
const anyAddresses = fc.array(fc.constantFrom('4', '6', '46', ''), { minLength: 15, maxLength: 15 });

/** Without a relay only the third gateway of the first pool can meet the second. */
const unlinked: TopologyObjects = {
  ...base,
  gatewayPools: [
    pool(
      'p1',
      [1, 2, 3].map((index) => ({ ...gateway(1, index), externalIPs: index === 3 ? ['203.0.113.3'] : [] })),
    ),
    pool('p2', [{ ...gateway(2, 1), externalIPs: [] }]),
  ],
};

test('a gateway that cannot link with the next pool hands on to those of its own that can, and says that it is a way round', () => {
  expect(groupsIn(unlinked, 's1-g1')).toEqual({ 'site s2 IPv4': ['1 s1-g3'] });
  expect(groupsIn(unlinked, 's1-g2')).toEqual({ 'site s2 IPv4': ['1 s1-g3'] });
  expect(groupsIn(unlinked, 's1-g3')).toEqual({ 'site s2 IPv4': ['0 s2-g1', '1 s1-g1', '1 s1-g2'] });
});

test('whatever addresses gateways have, no packet goes in a circle', () => {
  const withAddresses = (objects: TopologyObjects, families: readonly string[]): TopologyObjects => ({
    ...objects,
    gatewayPools: objects.gatewayPools.map((one, at) => ({
      ...one,
      status: {
        nodes: (one.status?.nodes ?? []).map((node, index) => ({
          ...node,
          externalIPs: (node.externalIPs ?? []).filter((ip) =>
            families[3 * at + index]!.includes(ip.includes(':') ? '6' : '4'),
          ),
        })),
      },
    })),
  });
  fc.assert(
    fc.property(anyConnectedCluster, anyAddresses, (objects, families) => {
      const network = networkOf(withAddresses(objects, families));
      for (const from of network.world.workers) {
        for (const to of network.world.workers) {
          for (const family of [4, 6] as const) {
            const [source, target] = [from, to].map(({ podCidrs }) => podCidrs.find((own) => own.family === family));
            if (from === to || !source || !target) continue;
            const [packet, goal] = [hostPrefix(firstAddress(source)), hostPrefix(firstAddress(target))];
            expect(failureOf(network, [from.name], goal, packet) ?? '').not.toMatch(/^loop/);
          }
        }
      }
    }),
    { numRuns: 150 },
  );
}, 60_000);
