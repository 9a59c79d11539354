import { AddressSet, hostPrefix, parseAddress, parsePrefix, containsPrefix } from '@unbounded/ip';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { longestMatch } from '../explain/forwarding-simulation.ts';
import { planIn } from '../explain/plan-table.ts';
import { anyCluster } from '../random-cluster.testdata.ts';
import { cluster, gateway, join, pool, site, slice, worker } from '../testdata.ts';
import { planNode } from '../node.plan.ts';
import { parseWorld } from '../world/parse-world.ts';
import type { NodePlan } from '../plan.ts';
import type { TopologyObjects } from '../world/world.ts';

const base = cluster({ sites: 2, gateways: 1, workers: 1 });
const API = { address: '203.0.113.99', role: 'an address of the API server' };
const reasonsOf = ({ problems }: NodePlan): string[] => problems.map(({ reason }) => reason);

/** What leads an address into the overlay: the block that matches it best, unless the node reaches it directly. */
const ways = (plan: NodePlan, address: string): unknown[] => {
  const host = hostPrefix(parseAddress(address));
  // Of an address on the node's own network a block is for what comes out of the overlay; the node itself goes by the LAN.
  const blocks = plan.blocks.filter(({ use }) => use === undefined || use === 'unrouted');
  const all = [
    ...plan.direct.map((prefix) => ({ prefix, isDirect: true })),
    ...[...blocks, ...plan.contained.map((prefix) => ({ prefix }))].map(({ prefix }) => ({ prefix, isDirect: false })),
  ];
  const found = longestMatch(all, host);
  return found === undefined || found.isDirect ? [] : [found];
};

const blockSite = (...cidrBlocks: string[]) => {
  const one = site(9);
  return { ...one, spec: { ...one.spec, podCidrAssignments: [{ cidrBlocks }] } };
};
const withSite = (...cidrBlocks: string[]): TopologyObjects => ({
  ...base,
  sites: [...base.sites, blockSite(...cidrBlocks)],
  assignments: [...base.assignments, join('assignments', 'a9', { sites: ['s9'], gatewayPools: ['p2'] })],
});
/** All but what is told, and the sets of pods' addresses. */
const rest = (plan: NodePlan): object => ({ ...plan, masquerade: undefined, withheld: undefined, problems: undefined });
const covered = (prefixes: readonly string[] | undefined, address: string): boolean =>
  AddressSet.of((prefixes ?? []).map(parsePrefix)).has(parseAddress(address));
/** Whether the address counts as a pod's: forged when it comes in by no tunnel, not masqueraded, not to leave in the clear. */
const countsAsPods = ({ masquerade, withheld }: NodePlan, address: string): boolean[] =>
  [masquerade.sources, masquerade.exceptTo, withheld].map((prefixes) => covered(prefixes, address));

describe('a block of pods', () => {
  test.each([
    ['a gateway’s external address', '203.0.113.120/29', '203.0.113.121'],
    ['the API server’s address', '203.0.113.99/32', '203.0.113.99'],
    ['the node’s own address', '10.1.0.16/28', '10.1.0.21'],
    ['the default gateway', '10.1.0.1/32', '10.1.0.1'],
    ['loopback addresses', '127.0.0.0/8', '127.0.0.1'],
    ['link-local addresses', '169.254.0.0/16', '169.254.169.254'],
    ['multicast addresses', '224.0.0.0/4', '224.0.0.1'],
    ['everything', '0.0.0.0/0', '8.8.8.8'],
    ['more than a /8', '8.0.0.0/5', '8.8.8.8'],
  ])('that holds %s is left out and told, and all else is as without it', (_, block, address) => {
    const protectedAddresses = [API, { address: '10.1.0.1', role: 'the default gateway' }];
    const local = { protectedAddresses };
    const before = planIn(withSite('100.73.0.0/16'), 's1-g1', local);
    const plan = planIn(withSite('100.73.0.0/16', block), 's1-g1', local, before.holdings);
    expect(ways(plan, address)).toEqual([]);
    expect(rest(plan)).toEqual(rest(before));
    expect(countsAsPods(plan, address)).toEqual([false, false, false]);
    const found = plan.problems.filter(({ reason }) => reason !== 'PodCIDROverlap');
    const [problem] = found;
    expect(reasonsOf({ ...plan, problems: found })).toEqual(['RouteOverlapsUnderlay']);
    expect(problem?.message).toContain(`Site s9 cidrBlocks: ${block}`);
    expect(problem?.message).toContain('list smaller blocks');
  });
});

test('blocks of nodes and of pools that hold the API server are left out at all nodes', () => {
  const [first, second] = base.sites;
  const objects = {
    ...base,
    sites: [first!, { ...second!, spec: { ...second!.spec, nodeCidrs: ['10.2.0.0/24', '198.51.100.0/24'] } }],
    gatewayPools: [base.gatewayPools[0]!, pool('p2', [gateway(2, 1)], { routedCidrs: ['198.51.0.0/16'] })],
  };
  const local = { protectedAddresses: [{ ...API, address: '198.51.100.7' }] };
  for (const node of ['s1-w1', 's1-g1']) {
    const plan = planIn(objects, node, local);
    expect(ways(plan, '198.51.100.7')).toEqual([]);
    expect(plan.problems.map(({ message }) => message.split(' holds ')[0])).toEqual([
      'Site s2 nodeCidrs: 198.51.100.0/24',
      'GatewayPool p2 routedCidrs: 198.51.0.0/16',
    ]);
    expect(ways(planIn(objects, node), '198.51.100.7')).not.toEqual([]);
  }
});

test('a peer’s block that holds a protected address is not routed to it', () => {
  const plan = planIn(base, 's1-g1', { protectedAddresses: [{ ...API, address: '100.65.31.9' }] });
  expect(ways(plan, '100.65.31.9')).toEqual([]);
  expect(plan.wireGuard.flatMap(({ peers }) => peers.flatMap(({ allowedIps }) => allowedIps))).not.toContain(
    '100.65.31.0/24',
  );
});

test('an address that is near is cut out of a wider block, which is routed for the rest', () => {
  const objects = {
    ...base,
    gatewayPools: [base.gatewayPools[0]!, pool('p2', [gateway(2, 1)], { routedCidrs: ['10.0.0.0/8'] })],
  };
  const plan = planIn(objects, 's1-w1', { protectedAddresses: [{ ...API, address: '10.1.0.250' }] });
  expect(ways(plan, '10.1.0.250')).toEqual([]);
  expect(ways(plan, '10.99.0.1')).not.toEqual([]);
  expect(plan.problems).toEqual([]);
});

describe('nodes with public addresses behind another site’s pool', () => {
  const [, second] = base.sites;
  const publicSite = { ...second!, spec: { ...second!.spec, nodeCidrs: ['198.51.100.0/24'] } };
  const caller = { ...worker(2, 1), internalIPs: ['198.51.100.31'] };
  const objects: TopologyObjects = {
    ...base,
    sites: [site(1), publicSite],
    slices: [base.slices[0]!, slice(2, [caller])],
    gatewayPools: [pool('p1', [gateway(1, 1)])],
    assignments: [join('assignments', 'a1', { sites: ['s1', 's2'], gatewayPools: ['p1'] })],
    poolPeerings: [],
  };

  test('are not routed into the tunnel that they build from these addresses', () => {
    const plan = planIn(objects, 's1-g1');
    expect(ways(plan, '198.51.100.31')).toEqual([]);
    const allowed = plan.wireGuard.flatMap(({ peers }) => peers.flatMap(({ allowedIps }) => allowedIps));
    expect(allowed.some((text) => containsPrefix(parsePrefix(text), hostPrefix(parseAddress('198.51.100.31'))))).toBe(
      false,
    );
    expect(ways(plan, '100.66.31.7')).not.toEqual([]);
    expect(plan.problems).toEqual([]);
  });

  test('with private ones, which only a NAT can bring to the gateway, they are', () => {
    const behindNat = { ...objects, sites: [site(1), site(2)], slices: [base.slices[0]!, slice(2, [worker(2, 1)])] };
    expect(ways(planIn(behindNat, 's1-g1'), '10.2.0.31')).not.toEqual([]);
  });
});

test('no plan routes an address that is to be protected, whatever the blocks are', () => {
  const anyAddress = fc.constantFrom(
    ...['100.65.30.9', '100.66.200.1', '10.1.0.30', '10.2.0.1', '192.168.0.7', '192.168.1.1', '203.0.113.101'],
    ...['fd64:1:30::9', 'fd64:2:99::1', 'fd00:1::30', 'fd00:2::1', '2001:db8::101', '8.8.8.8'],
  );
  const blocks = fc.constantFrom(
    '0.0.0.0/0',
    '10.0.0.0/8',
    '192.168.0.0/16',
    '203.0.113.0/24',
    '2001:db8::/32',
    '::/0',
    '100.64.0.0/10',
  );
  fc.assert(
    fc.property(anyCluster, fc.array(anyAddress, { minLength: 1 }), fc.array(blocks), (objects, chosen, wide) => {
      const wider: TopologyObjects = {
        ...objects,
        gatewayPools: objects.gatewayPools.map((one) => ({
          ...one,
          spec: { ...one.spec, routedCidrs: [...(one.spec.routedCidrs ?? []), ...wide] },
        })),
      };
      const world = parseWorld(wider);
      const members = [...world.workers, ...[...world.pools.values()].flatMap((one) => one.gateways)];
      for (const member of members) {
        const { name } = member;
        const protectedAddresses = chosen.map((address) => ({ ...API, address }));
        const plan = planNode(world, { member, underlayMtuBytes: 1500, protectedAddresses });
        const endpoints = plan.tunnels.map(({ remoteIp }) => remoteIp);
        for (const address of [...chosen, ...endpoints, ...member.internalIps])
          expect(ways(plan, address), `${name}: ${address}`).toEqual([]);
      }
    }),
    { numRuns: 40 },
  );
});
