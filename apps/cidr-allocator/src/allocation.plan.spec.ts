import type { Site } from '@unbounded/crds';
import { containsPrefix, overlaps, parseAddress, parsePrefix } from '@unbounded/ip';
import { type NodeFacts, nodeFacts } from '@unbounded/membership';
import { growthBelow } from '@unbounded/testing/growth';
import fc from 'fast-check';
import { expect, test } from 'vitest';

import { planAllocations } from './allocation.plan.ts';

const site = (name: string, spec: Partial<Site['spec']> = {}, createdAt = '2026-01-01T00:00:00Z'): Site => ({
  apiVersion: 'net.unbounded-cloud.io/v1alpha1',
  kind: 'Site',
  metadata: { name, creationTimestamp: createdAt },
  spec: { nodeCidrs: ['10.1.0.0/16'], podCidrAssignments: [{ cidrBlocks: ['100.64.0.0/16'] }], ...spec },
});
const node = (
  name: string,
  address = '10.1.0.1',
  podCIDRs: readonly string[] = [],
  createdAt = '2026-01-02T00:00:00Z',
): NodeFacts =>
  nodeFacts({
    metadata: { name, creationTimestamp: createdAt },
    spec: { podCIDRs },
    status: { addresses: [{ type: 'InternalIP', address }] },
  });
const given = (sites: readonly Site[], nodes: readonly NodeFacts[]) =>
  Object.fromEntries(planAllocations({ sites, nodes }).allocations.map((entry) => [entry.node, entry.podCIDRs.join()]));
const assign = (...podCidrAssignments: Site['spec']['podCidrAssignments'][number][]) => [
  site('a', { podCidrAssignments }),
];

test.each<[string, readonly Site[], readonly NodeFacts[], Record<string, string>]>([
  [
    'older nodes are served first',
    [site('a')],
    [node('b'), node('z', '10.1.0.2', [], '2026-01-01T00:00:00Z')],
    { z: '100.64.0.0/24', b: '100.64.1.0/24' },
  ],
  [
    'of two created in the same second the first by name',
    [site('a')],
    [node('y'), node('x')],
    { x: '100.64.0.0/24', y: '100.64.1.0/24' },
  ],
  ['a node without a site gets nothing', [site('a')], [node('x', '192.0.2.1')], {}],
  ['a node that has blocks keeps them', [site('a')], [node('x', '10.1.0.1', ['10.200.0.0/24'])], {}],
  ['a site with another CNI plugin is left alone', [site('a', { manageCniPlugin: false })], [node('x')], {}],
  [
    'a disabled assignment is not used',
    assign({ assignmentEnabled: false, cidrBlocks: ['100.64.0.0/16'] }),
    [node('x')],
    {},
  ],
  [
    'the lowest priority number wins',
    assign({ cidrBlocks: ['100.64.0.0/16'] }, { cidrBlocks: ['100.65.0.0/16'], priority: 1 }),
    [node('x')],
    { x: '100.65.0.0/24' },
  ],
  [
    'on a tie the first in the list',
    assign({ cidrBlocks: ['100.64.0.0/16'] }, { cidrBlocks: ['100.65.0.0/16'], priority: 100 }),
    [node('x')],
    { x: '100.64.0.0/24' },
  ],
  [
    'the expression chooses, not anchored',
    assign({ cidrBlocks: ['100.64.0.0/16'], nodeRegex: ['^edge-', 'gpu'] }),
    [node('a-gpu-1'), node('web')],
    { 'a-gpu-1': '100.64.0.0/24' },
  ],
  [
    'an expression that does not compile matches nothing',
    assign({ cidrBlocks: ['100.64.0.0/16'], nodeRegex: ['('] }, { cidrBlocks: ['100.65.0.0/16'] }),
    [node('x')],
    { x: '100.65.0.0/24' },
  ],
  ['a lookahead is no RE2', assign({ cidrBlocks: ['100.64.0.0/16'], nodeRegex: ['(?=x)x'] }), [node('x')], {}],
  [
    'the second pool follows the first',
    assign({ cidrBlocks: ['100.64.0.0/25', '100.65.0.0/25'], nodeBlockSizes: { ipv4: 26 } }),
    [node('x'), node('y'), node('z')],
    { x: '100.64.0.0/26', y: '100.64.0.64/26', z: '100.65.0.0/26' },
  ],
  [
    'IPv4 comes first whatever the order of the pools',
    assign({ cidrBlocks: ['fd00::/48', '100.64.0.0/16'] }),
    [node('x')],
    { x: '100.64.0.0/24,fd00::/64' },
  ],
  ['IPv6 alone', assign({ cidrBlocks: ['fd00::/48'] }), [node('x')], { x: 'fd00::/64' }],
  [
    'the IPv6 default is 16 bits below the first pool, at most 128',
    assign({ cidrBlocks: ['fd00::/120'] }),
    [node('x')],
    { x: 'fd00::/128' },
  ],
  [
    'a larger foreign block blocks what it covers',
    [site('a')],
    [node('old', '192.0.2.1', ['100.64.0.0/22']), node('x')],
    { x: '100.64.4.0/24' },
  ],
  [
    'a smaller foreign block blocks its place',
    [site('a')],
    [node('old', '192.0.2.1', ['100.64.0.128/26']), node('x')],
    { x: '100.64.1.0/24' },
  ],
])('%s', (_, sites, nodes, want) => expect(given(sites, nodes)).toEqual(want));

test('a full pool stops only its own assignment, and who waits is named', () => {
  const sites = [
    site('a', { podCidrAssignments: [{ cidrBlocks: ['100.64.0.0/23'] }] }),
    site('b', { nodeCidrs: ['10.2.0.0/16'], podCidrAssignments: [{ cidrBlocks: ['100.65.0.0/16'] }] }),
  ];
  const nodes = [node('n1'), node('n2'), node('n3'), node('n4'), node('other', '10.2.0.1')];
  const { allocations, exhaustions } = planAllocations({ sites, nodes });
  expect(allocations.map((entry) => entry.node)).toEqual(['n1', 'n2', 'other']);
  expect(exhaustions).toEqual([
    { site: 'a', assignmentIndex: 0, family: 4, pools: ['100.64.0.0/23'], blockLength: 24, nodes: ['n3', 'n4'] },
  ]);
});

test('pools and block sizes that change count at once, for an assignment that moved up too', () => {
  const own = { cidrBlocks: ['100.64.0.0/16'] };
  expect(given(assign(own), [node('x')])).toEqual({ x: '100.64.0.0/24' });
  expect(given(assign({ cidrBlocks: ['100.70.0.0/16'] }), [node('x')])).toEqual({ x: '100.70.0.0/24' });
  expect(given(assign({ ...own, nodeBlockSizes: { ipv4: 26 } }), [node('x')])).toEqual({ x: '100.64.0.0/26' });
  const other = { cidrBlocks: ['100.71.0.0/16'] };
  expect(given(assign(own, other), [node('x')])).toEqual({ x: '100.64.0.0/24' });
  expect(given(assign(other), [node('x')])).toEqual({ x: '100.71.0.0/24' });
});

test('a node that gets no IPv6 block gets no IPv4 block either, and the IPv4 block is not lost', () => {
  const sites = assign({ cidrBlocks: ['100.64.0.0/16', 'fd00::/127'], nodeBlockSizes: { ipv6: 128 } });
  const { allocations, exhaustions } = planAllocations({ sites, nodes: [node('n1'), node('n2'), node('n3')] });
  expect(allocations).toHaveLength(2);
  expect(exhaustions).toMatchObject([{ family: 6, nodes: ['n3'] }]);
});

test('pools that two sites share, and nodes that overlap, are reported', () => {
  const sites = [
    site('a'),
    site(
      'b',
      { nodeCidrs: ['10.2.0.0/16'], podCidrAssignments: [{ cidrBlocks: ['100.64.8.0/21'] }] },
      '2026-02-01T00:00:00Z',
    ),
  ];
  const nodes = [node('n1', '10.1.0.1', ['100.64.1.0/24']), node('n2', '10.1.0.2', ['100.64.1.128/25'])];
  const plan = planAllocations({ sites, nodes });
  expect(plan.siteConflicts).toEqual([{ owner: 'b', cidr: '100.64.8.0/21', other: 'a', otherCidr: '100.64.0.0/16' }]);
  expect(plan.nodeConflicts).toEqual([
    { owner: 'n2', cidr: '100.64.1.128/25', other: 'n1', otherCidr: '100.64.1.0/24' },
  ]);
});

test.each([
  ['all Sites give blocks of one size', []],
  [
    'another Site gives blocks that wide',
    [
      site('b', {
        nodeCidrs: ['10.2.0.0/16'],
        podCidrAssignments: [{ cidrBlocks: ['100.0.0.0/12'], nodeBlockSizes: { ipv4: 16 } }],
      }),
    ],
  ],
])('a node that registers with the whole pool leaves it to those that follow, where %s', (_, others) => {
  const nodes = [node('greedy', '10.1.0.1', ['100.64.0.0/16']), node('next', '10.1.0.2')];
  const { allocations, exhaustions } = planAllocations({ sites: [site('a'), ...others], nodes });
  expect(allocations).toMatchObject([{ node: 'next', podCIDRs: [expect.stringMatching(/^100\.64\..*\/24$/)] }]);
  expect(exhaustions).toEqual([]);
});

const names = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,4}$/), { minLength: 1, maxLength: 40 });
const pools = fc.constantFrom(
  [{ cidrBlocks: ['100.64.0.0/20'] }],
  [{ cidrBlocks: ['100.64.0.0/22', '100.64.64.0/22', 'fd00::/56'], nodeBlockSizes: { ipv4: 25, ipv6: 64 } }],
  [
    { cidrBlocks: ['100.64.0.0/21'], nodeRegex: ['^[a-m]'] },
    { cidrBlocks: ['100.64.4.0/22'], nodeBlockSizes: { ipv4: 27 } },
  ],
);
const foreign = fc.uniqueArray(fc.constantFrom('100.64.0.0/23', '100.64.3.64/26', '100.64.8.0/22', 'fd00::/60'), {
  maxLength: 3,
});
const world = fc.tuple(names, pools, foreign).map(([all, podCidrAssignments, taken]) => ({
  sites: [site('a', { podCidrAssignments })],
  nodes: [...all.map((name) => node(name)), ...taken.map((cidr, index) => node(`Z${index}`, '192.0.2.1', [cidr]))],
}));

test('no address is given twice, and every block lies in a pool of its site', () => {
  fc.assert(
    fc.property(world, ({ sites, nodes }) => {
      const { allocations } = planAllocations({ sites, nodes });
      const ours = allocations.flatMap(({ podCIDRs }) => podCIDRs).map(parsePrefix);
      // A node of no Site that claims more than a node's block keeps nobody from the pool: see the test of exhaustion.
      const foreign = nodes
        .flatMap(({ podPrefixes }) => podPrefixes)
        .filter(({ length, family }) => family === 4 && length > 24);
      const inPools = sites[0]!.spec.podCidrAssignments.flatMap(({ cidrBlocks }) => cidrBlocks.map(parsePrefix));
      for (const [index, block] of ours.entries()) {
        for (const other of [...ours.slice(index + 1), ...foreign]) expect(overlaps(block, other)).toBe(false);
        expect(inPools.some((pool) => containsPrefix(pool, block))).toBe(true);
      }
    }),
  );
});

test('blocks that were released a moment ago, or that a node may not use, are given only when nothing else is free', () => {
  const sites = [site('a', { podCidrAssignments: [{ cidrBlocks: ['100.64.0.0/22'] }] })];
  const cooling = [parsePrefix('100.64.0.0/24')];
  const order = (nodes: readonly NodeFacts[]) =>
    planAllocations({ sites, nodes, cooling }).allocations.map(({ podCIDRs }) => podCIDRs[0]);
  const waiting = ['n1', 'n2', 'n3', 'n4', 'n5'].map((name, index) => node(name, `10.1.0.${index + 1}`));
  expect(order(waiting)).toEqual(['100.64.1.0/24', '100.64.2.0/24', '100.64.3.0/24', '100.64.0.0/24']);
});

test('a node that states a whole pool, or addresses in it, brings no block forward that was released a moment ago', () => {
  const sites = [site('a', { podCidrAssignments: [{ cidrBlocks: ['100.64.0.0/22'] }] })];
  const first = (cooling: string[], ...others: NodeFacts[]) =>
    planAllocations({ sites, nodes: [node('n1'), ...others], cooling: cooling.map(parsePrefix) }).allocations[0]
      ?.podCIDRs[0];
  const greedy = node('greedy', '192.0.2.1', ['100.64.0.0/22']);
  expect(first(['100.64.0.0/24'], greedy)).toBe('100.64.1.0/24');
  const inEach = Array.from({ length: 4 }, (_, index) => node(`s${index}`, `100.64.${index}.9`));
  expect(first(['100.64.0.0/24'], ...inEach)).toBe('100.64.1.0/24');
  // Nor when it has been deleted, as one is told to.
  expect(first(['100.64.0.0/22', '100.64.0.0/24'])).toBe('100.64.1.0/24');
  expect(first(['100.64.0.0/24', '100.64.1.0/24', '100.64.2.0/24', '100.64.3.0/24'], greedy)).toBe('100.64.0.0/24');
});

test('a record whose Node is gone keeps its block from others as long as another is free: an allocator that restarted', () => {
  const slice = {
    apiVersion: 'net.unbounded-cloud.io/v1alpha1',
    kind: 'SiteNodeSlice',
    metadata: { name: 'a-0' },
    siteName: 'a',
    sliceIndex: 0,
    nodes: [{ name: 'gone', podCIDRs: ['100.64.0.0/24'] }],
  } as const;
  const given = (...nodes: NodeFacts[]) =>
    planAllocations({ sites: [site('a')], nodes, slices: [slice] }).allocations.map(({ podCIDRs }) => podCIDRs[0]);
  expect(given(node('x'))).toEqual(['100.64.1.0/24']);
  // Another Node of its name, without a block or with another: the pods of the former may live.
  expect(given(node('gone'), node('x', '10.1.0.2'))).toEqual(['100.64.1.0/24', '100.64.2.0/24']);
  expect(given(node('gone', '10.1.0.1', ['100.64.9.0/24']), node('x', '10.1.0.2'))).toEqual(['100.64.1.0/24']);
});

test('of two nodes with one block the one that a slice listed first has it, and the other is told', () => {
  const slice = {
    apiVersion: 'net.unbounded-cloud.io/v1alpha1',
    kind: 'SiteNodeSlice',
    metadata: { name: 'a-0' },
    siteName: 'a',
    sliceIndex: 0,
    nodes: [{ name: 'n2', podCIDRs: ['100.64.0.0/24'] }],
  } as const;
  const nodes = [node('n1', '10.1.0.1', ['100.64.0.0/24']), node('n2', '10.1.0.2', ['100.64.0.0/24'])];
  expect(planAllocations({ sites: [site('a')], nodes, slices: [slice] }).nodeConflicts).toEqual([
    { owner: 'n1', cidr: '100.64.0.0/24', other: 'n2', otherCidr: '100.64.0.0/24' },
  ]);
});

test.each<[string, string, string]>([
  ['an API server', '203.0.113.96/27', 'BlockHoldsAPIServer'],
  ['Services', '10.96.4.0/22', 'BlockOverlapsServices'],
  ['a node', '10.1.0.0/16', 'BlockHoldsNodeAddress'],
  ['a gateway', '198.51.100.0/23', 'BlockHoldsNodeAddress'],
])('nothing is allocated from a block with the address of %s; other blocks serve', (_, block, reason) => {
  const size = { nodeBlockSizes: { ipv4: 28 } };
  const sites = assign({ cidrBlocks: [block, '100.64.0.0/16'], ...size });
  const pools = [
    {
      apiVersion: 'net.unbounded-cloud.io/v1alpha1',
      kind: 'GatewayPool',
      metadata: { name: 'p' },
      spec: { nodeSelector: { gw: 'p' } },
      status: { nodes: [{ name: 'g', wireGuardPublicKey: 'k', externalIPs: ['198.51.100.7'] }] },
    },
  ] as const;
  const cluster = { apiServers: [parseAddress('203.0.113.99')], services: [parsePrefix('10.96.0.0/16')] };
  const plan = planAllocations({ sites, nodes: [node('x')], pools, cluster });
  expect(plan.allocations).toMatchObject([{ podCIDRs: ['100.64.0.0/28'] }]);
  expect(plan.underlayConflicts).toMatchObject([{ site: 'a', cidr: block, reason }]);
});

test('an address that a node states inside a block of pods stops no allocation; the block around it is the last to be given', () => {
  const sites = assign({ cidrBlocks: ['10.1.128.0/23'] });
  const states = nodeFacts({
    metadata: { name: 'hostile', creationTimestamp: '2026-01-03T00:00:00Z' },
    spec: { podCIDRs: ['10.200.0.0/24'] },
    status: { addresses: ['10.1.0.9', '10.1.128.9'].map((address) => ({ type: 'InternalIP', address })) },
  });
  const plan = planAllocations({ sites, nodes: [node('x'), node('y', '10.1.0.2'), states] });
  expect(plan.underlayConflicts).toEqual([]);
  expect(plan.allocations.map(({ podCIDRs }) => podCIDRs.join())).toEqual(['10.1.129.0/24', '10.1.128.0/24']);
});

test('a block is refused for an address inside it that a node was listed with before', () => {
  const sites = assign({ cidrBlocks: ['10.1.0.0/17'] });
  const slices = [
    {
      apiVersion: 'net.unbounded-cloud.io/v1alpha1',
      kind: 'SiteNodeSlice',
      metadata: { name: 'a-0' },
      siteName: 'a',
      sliceIndex: 0,
      nodes: [{ name: 'x', internalIPs: ['10.1.0.1'] }],
    },
  ] as const;
  const plan = planAllocations({ sites, nodes: [node('x')], slices });
  expect(plan.underlayConflicts).toMatchObject([{ cidr: '10.1.0.0/17', reason: 'BlockHoldsNodeAddress' }]);
});

test('a malformed address in the status of a pool stops no allocation', () => {
  const pools = [
    {
      apiVersion: 'net.unbounded-cloud.io/v1alpha1',
      kind: 'GatewayPool',
      metadata: { name: 'p' },
      spec: { nodeSelector: { gw: 'p' } },
      status: { nodes: [{ name: 'g', wireGuardPublicKey: 'k', externalIPs: ['x', '198.51.100.7'] }] },
    },
  ] as const;
  const sites = assign({ cidrBlocks: ['198.51.100.0/24', '100.64.0.0/16'] });
  const plan = () => planAllocations({ sites, nodes: [node('x')], pools });
  expect(plan).not.toThrow();
  expect(plan().allocations).toMatchObject([{ podCIDRs: ['100.64.0.0/24'] }]);
  expect(plan().underlayConflicts).toMatchObject([{ reason: 'BlockHoldsNodeAddress' }]);
});

test('the order of the input does not matter', () => {
  fc.assert(
    fc.property(world, fc.infiniteStream(fc.nat()), ({ sites, nodes }, order) => {
      const keyed = nodes.map((entry) => ({ entry, rank: order.next().value as number }));
      const shuffled = keyed.sort((a, b) => a.rank - b.rank).map(({ entry }) => entry);
      expect(planAllocations({ sites, nodes: shuffled })).toEqual(planAllocations({ sites, nodes }));
    }),
  );
});

test('a node that goes away changes no other’s block, and its own can be given again', () => {
  fc.assert(
    fc.property(world, fc.nat(), ({ sites, nodes }, pick) => {
      const first = planAllocations({ sites, nodes });
      fc.pre(first.allocations.length > 0);
      const blocks = new Map(first.allocations.map((entry) => [entry.node, entry.podCIDRs]));
      const settled = nodes.map((entry) =>
        blocks.has(entry.name) ? node(entry.name, '10.1.0.1', blocks.get(entry.name)) : entry,
      );
      const gone = first.allocations[pick % first.allocations.length]!.node;
      const second = planAllocations({ sites, nodes: settled.filter(({ name }) => name !== gone) });
      for (const { node: name } of second.allocations) expect(blocks.has(name)).toBe(false);
    }),
  );
});

test('when every node has its blocks a second plan does nothing', () => {
  fc.assert(
    fc.property(world, ({ sites, nodes }) => {
      const blocks = new Map(
        planAllocations({ sites, nodes }).allocations.map((entry) => [entry.node, entry.podCIDRs]),
      );
      const settled = nodes.map((entry) =>
        blocks.has(entry.name) ? node(entry.name, '10.1.0.1', blocks.get(entry.name)) : entry,
      );
      expect(planAllocations({ sites, nodes: settled }).allocations).toEqual([]);
    }),
  );
});

/** Plans blocks for so many nodes. */
const planFor = (count: number) => {
  const sites = [
    site('a', {
      nodeCidrs: ['10.0.0.0/8'],
      podCidrAssignments: [{ cidrBlocks: ['100.64.0.0/10', 'fd00::/40'], nodeBlockSizes: { ipv4: 24, ipv6: 56 } }],
    }),
  ];
  const nodes = Array.from({ length: count }, (_, index) => node(`n${index}`, `10.1.${index >> 8}.${index & 255}`));
  return () => expect(planAllocations({ sites, nodes }).allocations).toHaveLength(count);
};

test('five times as many nodes cost five times as much, and not 25 times', () => {
  expect(growthBelow(12, planFor(1000), planFor(5000))).toBeLessThan(12);
});
