import { NODE_FEATURES } from '@unbounded/crds';
import { firstAddress, hostPrefix, parseAddress, type Prefix } from '@unbounded/ip';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { failureOf, longestMatch, type Network, networkOf } from '../explain/forwarding-simulation.ts';
import { planIn } from '../explain/plan-table.ts';
import { anyConnectedCluster } from '../random-cluster.testdata.ts';
import { cluster, inFamilies, join } from '../testdata.ts';
import type { NodePlan } from '../plan.ts';
import type { TopologyObjects } from '../world/world.ts';

/** With agents of this version on the gateways, or on some. */
const withFeatures = (objects: TopologyObjects, isNew: (gateway: string) => boolean = () => true): TopologyObjects => ({
  ...objects,
  gatewayPools: objects.gatewayPools.map((one) => ({
    ...one,
    status: {
      nodes: (one.status?.nodes ?? []).map((node) =>
        isNew(node.name) ? { ...node, features: [...NODE_FEATURES] } : node,
      ),
    },
  })),
});
const twoSites = withFeatures(cluster({ sites: 2, gateways: 2, workers: 2, protocol: 'VXLAN' }));
const sourcesOf = ({ blocks }: NodePlan): string[] =>
  blocks.filter(({ source }) => source === 'node').map(({ prefix }) => prefix);

describe('a node’s own packets to another site come from its InternalIP', () => {
  test.each([
    ['s1-w1', []],
    ['s1-g1', ['100.66.21.0/24', '100.66.22.0/24']],
  ])('to its pods and its nodes: %s', (node, direct) => {
    expect(sourcesOf(planIn(twoSites, node))).toEqual(['10.2.0.0/24', '100.66.0.0/16', ...direct]);
  });

  test('in each family that the node has', () => {
    expect(sourcesOf(planIn(inFamilies(twoSites, '46', '46'), 's1-w1'))).toEqual([
      ...['10.2.0.0/24', '100.66.0.0/16'],
      ...['fd00:2::/64', 'fd64:66::/32'],
    ]);
    expect(sourcesOf(planIn(inFamilies(twoSites, '46', '4'), 's1-w1'))).toEqual(['10.2.0.0/24', '100.66.0.0/16']);
  });
});

describe('they come from its overlay address', () => {
  test('inside its site, and between sites that share a network', () => {
    const blocks = planIn(twoSites, 's1-w1').blocks.filter(({ prefix }) => prefix.startsWith('100.65.'));
    expect(blocks.map(({ source }) => source)).toEqual(blocks.map(() => undefined));
    const shared = { ...twoSites, sitePeerings: [join('sitePeerings', 'lan', { sites: ['s1', 's2'] })] };
    expect(sourcesOf(planIn(shared, 's1-w1'))).toEqual([]);
  });

  test('while a gateway of an earlier version would drop them', () => {
    expect(
      sourcesOf(
        planIn(
          withFeatures(cluster({ sites: 2, gateways: 2, workers: 2, protocol: 'VXLAN' }), (name) => name === 's1-g1'),
          's1-w1',
        ),
      ),
    ).toEqual([]);
  });

  test('where others do not route the block that its address is in', () => {
    const without = (gateway: string): TopologyObjects => ({
      ...twoSites,
      gatewayPools: twoSites.gatewayPools.map((one) => ({
        ...one,
        status: {
          nodes: one.status!.nodes!.map((node) =>
            node.name === gateway ? { ...node, features: ['node-addresses'] } : node,
          ),
        },
      })),
    });
    expect(sourcesOf(planIn(without('s2-g2'), 's1-w1'))).toEqual([]);
    expect(sourcesOf(planIn(without('s1-g2'), 's1-w1'))).toEqual(['10.2.0.0/24', '100.66.0.0/16']);
    const external = {
      ...twoSites,
      gatewayPools: twoSites.gatewayPools.map((one) => ({
        ...one,
        status: {
          nodes: one.status!.nodes!.map((node) =>
            node.name === 's1-g1' ? { ...node, externalIPs: ['10.1.0.99'] } : node,
          ),
        },
      })),
    };
    expect(sourcesOf(planIn(external, 's1-w1'))).toEqual([]);
  });

  test('where another site, or what a pool routes, has the same addresses', () => {
    const routed = {
      ...twoSites,
      gatewayPools: twoSites.gatewayPools.map((one, index) => ({
        ...one,
        spec: { ...one.spec, ...(index === 1 ? { routedCidrs: ['10.0.0.0/8'] } : {}) },
      })),
    };
    expect(sourcesOf(planIn(routed, 's1-w1'))).toEqual([]);
  });
});

const hostOf = (text: string): Prefix => hostPrefix(parseAddress(text));

/** By the longest route, as in the kernel: a shorter one may say otherwise. */
const isFromNode = ({ blocks, direct }: NodePlan, address: Prefix): boolean => {
  const routes: { prefix: string; source?: string }[] = [
    ...direct.map((prefix) => ({ prefix })),
    ...blocks.filter(({ use }) => use === undefined),
  ];
  return longestMatch(routes, address)?.source === 'node';
};

/** Each node with an address from which it sends to a pod of another. */
const flowsOf = ({ members, plans }: Network) =>
  [...members.values()].flatMap((from) =>
    [...members.values()].flatMap((to) =>
      to.podCidrs
        .map((pods) => hostPrefix(firstAddress(pods)))
        .filter((pod) => isFromNode(plans.get(from.name)!, pod))
        .map((pod) => ({
          ...{ from, to, pod },
          address: from.internalIps.map(hostOf).find(({ family }) => family === pod.family)!,
        })),
    ),
  );

test('in any cluster they arrive, and so do the answers', () => {
  let seen = 0;
  const check = (objects: TopologyObjects): void => {
    const network = networkOf(withFeatures(objects));
    for (const { from, to, address, pod } of flowsOf(network)) {
      // A pod that does not meet the node's overlay address either says nothing of the source.
      const block = from.podCidrs.find(({ family }) => family === pod.family);
      if (!block) continue;
      const overlay = hostPrefix(firstAddress(block));
      const meets = [failureOf(network, [from.name], pod, overlay), failureOf(network, [to.name], overlay, pod)];
      if (meets.some((failure) => failure !== undefined)) continue;
      seen++;
      const name = `${from.name} (${address.address}) to ${to.name}`;
      expect(failureOf(network, [from.name], pod, address), name).toBeUndefined();
      expect(failureOf(network, [to.name], address, pod), `${name}: answers`).toBeUndefined();
    }
  };
  fc.assert(fc.property(anyConnectedCluster, check), { numRuns: 100 });
  check(twoSites);
  expect(seen).toBeGreaterThan(50);
}, 60_000);

describe('a node routes the nodes of other networks', () => {
  const routes = (objects: TopologyObjects, local: object = {}): boolean | undefined =>
    planIn(objects, 's2-g1', local).routesNodes;

  test('but for a block that holds what it must reach without the overlay', () => {
    expect(routes(twoSites)).toBe(true);
    const protectedAddresses = [{ address: '10.1.0.7', role: 'an address of the API server' }];
    expect(routes(twoSites, { protectedAddresses })).toBeUndefined();
    expect(routes(twoSites, { protectedAddresses: [{ ...protectedAddresses[0]!, address: '10.2.0.7' }] })).toBe(true);
  });

  test('but for a block that its own pool routes', () => {
    const gatewayPools = twoSites.gatewayPools.map((one, index) =>
      index === 1 ? { ...one, spec: { ...one.spec, routedCidrs: ['10.1.0.128/25'] } } : one,
    );
    expect(routes({ ...twoSites, gatewayPools })).toBeUndefined();
  });
});
