import { containsPrefix, firstAddress, hostPrefix, overlaps, parsePrefix } from '@unbounded/ip';
import type { SiteNode } from '@unbounded/crds';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { planIn } from './explain/plan-table.ts';
import { failureOf, networkOf } from './explain/forwarding-simulation.ts';
import { advertisedRoutes } from './routing/advertised-routes.ts';
import { blockOfSite, locatorOf, withLocators } from './locators.testdata.ts';
import type { NodePlan } from './plan.ts';
import { anyConnectedCluster } from './random-cluster.testdata.ts';
import { cluster, inFamilies } from './testdata.ts';
import { nodeLocators } from './world/node-locators.ts';
import { parseWorld } from './world/parse-world.ts';
import type { TopologyObjects } from './world/world.ts';

const isLocator = (text: string): boolean => overlaps(parsePrefix('fd4c::/48'), parsePrefix(text));
const locatorBlocks = ({ blocks }: NodePlan) => blocks.filter(({ prefix }) => isLocator(prefix));

describe('a cluster whose pods and nodes have IPv4 alone', () => {
  const objects = withLocators(cluster({ sites: 3, gateways: 1, workers: 2, protocol: 'VXLAN' }));
  const worker = planIn(objects, 's1-w1');

  test('a worker has an entry for each peer, one for each other site, and none for its own locator', () => {
    expect(locatorBlocks(worker).map(({ prefix }) => prefix)).toEqual([
      locatorOf(1, 1),
      locatorOf(1, 3),
      blockOfSite(2),
      blockOfSite(3),
    ]);
    expect(worker.locators).toEqual({ own: locatorOf(1, 2), blocks: [1, 2, 3].map(blockOfSite) });
  });

  test('one more site is one entry more', () => {
    const more = withLocators(cluster({ sites: 4, gateways: 1, workers: 2, protocol: 'VXLAN' }));
    expect(locatorBlocks(planIn(more, 's1-w1'))).toHaveLength(5);
  });

  test('no packet for a locator leaves by the default route, and the own one is left to others', () => {
    expect(worker.contained).toEqual(expect.arrayContaining([1, 2, 3].map(blockOfSite)));
    expect(worker.direct).toContain(locatorOf(1, 2));
  });

  test('the own locator comes from nobody, and those of a site from its gateways', () => {
    const gateway = worker.tunnels.find(({ node }) => node === 's1-g1')!;
    expect(gateway.sources.filter(isLocator)).toEqual([locatorOf(1, 1), 'fd4c:0:0:2000::/51']);
    const peer = worker.tunnels.find(({ node }) => node === 's1-w2')!;
    expect(peer.sources.filter(isLocator)).toEqual([locatorOf(1, 3)]);
  });

  test('locators are no addresses of pods, nodes or probes', () => {
    const before = planIn(cluster({ sites: 3, gateways: 1, workers: 2, protocol: 'VXLAN' }), 's1-w1');
    const { podCidrs, overlayAddresses, masquerade, probes, echoes, mtuBytes, boundary, tunnelEnds } = before;
    expect(worker).toMatchObject({
      podCidrs,
      overlayAddresses,
      masquerade,
      probes,
      echoes,
      mtuBytes,
      boundary,
      tunnelEnds,
    });
  });

  test('a worker allows its gateway the blocks of the other sites by WireGuard', () => {
    const plan = planIn(withLocators(cluster({ sites: 2, gateways: 1, workers: 1, protocol: 'WireGuard' })), 's1-w1');
    const [peer] = plan.wireGuard.flatMap(({ peers }) => peers);
    expect(peer!.allowedIps).toEqual(expect.arrayContaining([locatorOf(1, 1), blockOfSite(2)]));
  });

  test('a gateway advertises the block of its site', () => {
    expect(advertisedRoutes(parseWorld(objects), 's1-g1')[blockOfSite(1)]).toMatchObject({
      type: 'L2LocatorBlock',
      source: 's1',
    });
  });

  test('locators of all nodes are known, also of those without a link', () => {
    expect(nodeLocators(parseWorld(objects)).get('s3-w2')).toBe(locatorOf(3, 3));
    expect(nodeLocators(parseWorld(objects)).size).toBe(9);
  });

  test('a gateway whose agent knows no locators carries none to other sites', () => {
    const old = structuredClone(objects);
    Object.assign(old.gatewayPools[0]!.status!.nodes![0]!, { features: ['node-addresses'] });
    expect(locatorBlocks(planIn(old, 's1-w1')).map(({ prefix }) => prefix)).toEqual([locatorOf(1, 1), locatorOf(1, 3)]);
  });

  test('a node without a locator has no path to those of others', () => {
    const without = structuredClone(objects);
    delete (without.slices[0]!.nodes![0] as { l2Locator?: string }).l2Locator;
    expect(locatorBlocks(planIn(without, 's1-w1'))).toEqual([]);
    expect(locatorBlocks(planIn(without, 's1-w2')).map(({ prefix }) => prefix)).not.toContain(locatorOf(1, 2));
  });

  test.each([
    ['IPIP', 'IPIP carries IPv4 alone'],
    ['None', 'both ends need IPv6 addresses'],
  ] as const)('%s carries none, and a problem names the remedy', (protocol, why) => {
    const plan = planIn(withLocators(cluster({ sites: 1, gateways: 1, workers: 2, protocol })), 's1-w1');
    expect(locatorBlocks(plan)).toEqual([]);
    expect(plan.problems.map(({ reason }) => reason)).toContain('LocatorNotCarried');
    expect(plan.problems[0]!.message).toContain(why);
    expect(plan.problems[0]!.message).toContain('tunnelProtocol: VXLAN');
  });
});

test('where pods have IPv6 the blocks of locators share the groups of their sites', () => {
  const objects = inFamilies(cluster({ sites: 3, gateways: 2, workers: 2 }), '46', '4');
  const [before, after] = [planIn(objects, 's1-w1'), planIn(withLocators(objects), 's1-w1')];
  expect(after.groups).toEqual(before.groups);
  expect(locatorBlocks(after).at(-1)!.to).toEqual({ group: 'site s3 IPv6' });
});

describe('what is stated and is no locator of the node', () => {
  const objects = withLocators(cluster({ sites: 2, gateways: 1, workers: 2, protocol: 'VXLAN' }));
  const stating = (patch: Partial<SiteNode>): TopologyObjects => {
    const copy = structuredClone(objects);
    Object.assign(copy.slices[0]!.nodes![0]!, patch);
    return copy;
  };
  const seen = (given: TopologyObjects, held: Parameters<typeof parseWorld>[1] = []) => {
    const world = parseWorld(given, held);
    return { locators: nodeLocators(world), reasons: world.problems.map(({ reason }) => reason) };
  };

  test.each([
    ['outside of the block of its Site', locatorOf(2, 9), 'LocatorOutsideSite'],
    ['wider than a /64', 'fd4c:0:0:1000::/56', 'InvalidLocator'],
    ['an address', 'fd4c:0:0:1002::1/128', 'InvalidLocator'],
    ['of IPv4', '100.65.31.0/24', 'InvalidLocator'],
    ['spelled another way', 'FD4C:0:0:1002::/64', 'InvalidLocator'],
  ])('%s', (_, l2Locator, reason) => {
    const { locators, reasons } = seen(stating({ l2Locator }));
    expect(locators.has('s1-w1')).toBe(false);
    expect(reasons).toEqual([reason]);
  });

  test('of two nodes with one the holder keeps it, and without a holder nobody has it', () => {
    const claimed = stating({ l2Locator: locatorOf(1, 3) });
    const contested = seen(claimed);
    expect([contested.locators.has('s1-w1'), contested.locators.has('s1-w2')]).toEqual([false, false]);
    const held = [{ node: 's1-w2', keys: [], blocks: [locatorOf(1, 3)], addresses: [] }];
    const { locators, reasons } = seen(claimed, held);
    expect([locators.has('s1-w1'), locators.get('s1-w2')]).toEqual([false, locatorOf(1, 3)]);
    expect(reasons).toEqual(['LocatorOverlap']);
  });

  test('a pod CIDR among locators is not routed', () => {
    const foreign = stating({ podCIDRs: [locatorOf(2, 2)] });
    for (const site of foreign.sites) Object.assign(site.spec.podCidrAssignments[0]!, { assignmentEnabled: false });
    expect(seen(foreign).reasons).toContain('PodCIDRsOutsideSite');
  });

  test.each([
    ['pod CIDRs', 'fd64:66:0:1000::/52', 'LocatorBlockOverlap'],
    ['the block of another Site', blockOfSite(1), 'LocatorBlockOverlap'],
    ['a block of another size', 'fd4c:0:0:2000::/56', 'InvalidLocatorBlock'],
    ['no unicast addresses', 'fe80::/52', 'InvalidLocatorBlock'],
  ])('a block of a Site with %s is not used', (_, l2LocatorBlock, reason) => {
    const copy = inFamilies(structuredClone(objects), '46', '46');
    Object.assign(copy.sites[1]!, { status: { l2LocatorBlock } });
    const { locators, reasons } = seen(copy);
    expect([locators.has('s1-w1'), locators.has('s2-w1')]).toEqual([true, false]);
    expect(reasons).toContain(reason);
  });

  test('an address of the underlay in a block keeps it out of the routes, and its other addresses from the default route', () => {
    const copy = structuredClone(objects);
    Object.assign(copy.gatewayPools[1]!.status!.nodes![0]!, { externalIPs: ['fd4c:0:0:2000::5', '203.0.113.9'] });
    const plan = planIn(copy, 's1-g1', { protectedAddresses: [{ address: 'fd4c:0:0:2000::5', role: 'a peer' }] });
    expect(locatorBlocks(plan).map(({ prefix }) => prefix)).not.toContain(blockOfSite(2));
    expect(plan.locators!.blocks.some((text) => containsPrefix(parsePrefix(text), parsePrefix(locatorOf(2, 2))))).toBe(
      true,
    );
  });
});

test('whatever connects the pods of two nodes carries their frames too, without a loop', () => {
  fc.assert(
    fc.property(anyConnectedCluster, (objects) => {
      const after = networkOf(withLocators(objects));
      const isIpv4Alone = [...after.plans.values()].some(({ problems }) =>
        problems.some(({ reason }) => reason === 'LocatorNotCarried'),
      );
      for (const from of after.world.workers) {
        for (const to of after.world.workers) {
          if (from === to || !from.locator || !to.locator) continue;
          const [source, target] = [hostPrefix(firstAddress(from.locator)), hostPrefix(firstAddress(to.locator))];
          const failure = failureOf(after, [from.name], target, source);
          expect(failure ?? '').not.toMatch(/loop|refused/);
          for (const family of [4, 6] as const) {
            const [own, far] = [from, to].map(({ podCidrs }) => podCidrs.find((block) => block.family === family));
            if (!own || !far || isIpv4Alone || (from.site === to.site && !after.world.sites.get(from.site)!.manageCni))
              continue;
            const pods = failureOf(after, [from.name], hostPrefix(firstAddress(far)), hostPrefix(firstAddress(own)));
            if (pods === undefined) expect(failure, `${from.name} -> ${to.name}`).toBeUndefined();
          }
        }
      }
    }),
    { numRuns: 12 },
  );
});
