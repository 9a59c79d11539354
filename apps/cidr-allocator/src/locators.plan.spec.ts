import { annotations, type Mesh, type Site, type SiteNodeSlice } from '@unbounded/crds';
import { containsPrefix, parseAddress, parsePrefix } from '@unbounded/ip';
import { type NodeFacts, nodeFacts } from '@unbounded/membership';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { locatorPrefixOf } from './locator-prefix.plan.ts';
import { type LocatorWorld, planLocators } from './locators.plan.ts';

const PREFIX = 'fd53:ab:cd::/48';
const apiVersion = 'net.unbounded-cloud.io/v1alpha1';

/** Site number 1 has nodes in 10.1.0.0/16; a greater number is younger. */
const site = (number: number, block?: string): Site => ({
  apiVersion,
  kind: 'Site',
  metadata: { name: `s${number}`, creationTimestamp: `2026-01-01T00:00:${String(number).padStart(2, '0')}Z` },
  spec: {
    nodeCidrs: [`10.${number}.0.0/16`],
    podCidrAssignments: [{ cidrBlocks: [`100.${64 + number}.0.0/16`] }],
  },
  ...(block === undefined ? {} : { status: { l2LocatorBlock: block } }),
});
const node = (name: string, siteNumber: number, locator?: string, createdAt = '2026-01-02T00:00:00Z'): NodeFacts =>
  nodeFacts({
    metadata: {
      name,
      uid: `uid-${name}`,
      creationTimestamp: createdAt,
      ...(locator === undefined ? {} : { annotations: { [annotations.l2Locator]: locator } }),
    },
    status: { addresses: [{ type: 'InternalIP', address: `10.${siteNumber}.0.1` }] },
  });
const older = '2026-01-01T00:00:00Z';
const slice = (name: string, l2Locator: string): SiteNodeSlice => ({
  apiVersion,
  kind: 'SiteNodeSlice',
  metadata: { name: 's1-0' },
  siteName: 's1',
  sliceIndex: 0,
  nodes: [{ name, l2Locator }],
});
const plan = (world: Partial<LocatorWorld>) => planLocators({ prefix: PREFIX, sites: [], nodes: [], ...world });
const show = (world: Partial<LocatorWorld>) => {
  const { blocks, locators } = plan(world);
  return { blocks: Object.fromEntries(blocks), locators: Object.fromEntries(locators) };
};

const [first, second, third] = ['fd53:ab:cd::/52', 'fd53:ab:cd:1000::/52', 'fd53:ab:cd:2000::/52'] as const;

test.each<[string, readonly Site[], readonly NodeFacts[], Record<string, string>]>([
  ['Sites get the first free blocks, older Sites first', [site(2), site(1)], [], { s1: first, s2: second }],
  ['a block that stands in the status is kept', [site(1), site(2, first)], [], { s1: second, s2: first }],
  ['one outside of the prefix is not', [site(1, 'fd54::/52')], [], { s1: first }],
  ['nor one of another length', [site(1, 'fd53:ab:cd::/56')], [], { s1: first }],
  ['of two Sites with one block the older keeps it', [site(2, third), site(1, third)], [], { s1: third, s2: first }],
  [
    'a block with a locator of a node of another Site is given last',
    [site(1), site(2, third)],
    [node('x', 2, 'fd53:ab:cd:5::/64')],
    { s1: second, s2: third },
  ],
  [
    'one with locators of its own nodes is given first: a status that was lost comes again',
    [site(1), site(2)],
    [node('x', 2, 'fd53:ab:cd:2005::/64')],
    { s1: first, s2: third },
  ],
  [
    'also where a node of no Site has one there, and where some of its nodes have theirs in a lower block',
    [site(1), site(2)],
    [
      ...['a', 'b', 'c'].map((name, index) => node(name, 2, `fd53:ab:cd:200${index + 5}::/64`)),
      node('stray', 9, 'fd53:ab:cd:2001::/64'),
      node('few', 2, 'fd53:ab:cd:1001::/64'),
    ],
    { s1: first, s2: third },
  ],
  [
    'but not where others have as many',
    [site(1), site(2)],
    [node('a', 2, 'fd53:ab:cd:2005::/64'), node('stray', 9, 'fd53:ab:cd:2001::/64')],
    { s1: first, s2: second },
  ],
  ['one with a locator of a node of its own is not', [site(1)], [node('x', 1, 'fd53:ab:cd:5::/64')], { s1: first }],
])('%s', (_, sites, nodes, blocks) => expect(show({ sites, nodes }).blocks).toEqual(blocks));

test('a block in which others have locators is given when there is no other', () => {
  const sites = Array.from({ length: 16 }, (_, index) =>
    site(index + 1, index === 15 ? undefined : `fd53:ab:cd:${(index + 1).toString(16)}000::/52`),
  );
  expect(show({ sites, nodes: [node('x', 1, 'fd53:ab:cd:5::/64')] }).blocks['s16']).toBe(first);
});

test.each<[string, Partial<LocatorWorld>, Record<string, string | undefined>]>([
  [
    'nodes get the first free ones but not the block’s own address, older nodes first',
    { nodes: [node('a', 1), node('b', 1, undefined, older)] },
    { b: 'fd53:ab:cd:1::/64', a: 'fd53:ab:cd:2::/64' },
  ],
  [
    'what a node has is kept',
    { nodes: [node('a', 1, 'fd53:ab:cd:9::/64'), node('b', 1)] },
    { a: 'fd53:ab:cd:9::/64', b: 'fd53:ab:cd:1::/64' },
  ],
  [
    'a node of no Site keeps what it has',
    { nodes: [node('x', 9, 'fd53:ab:cd:1::/64'), node('a', 1)] },
    { a: 'fd53:ab:cd:2::/64' },
  ],
  [
    'a node with a locator of another Site gets a new one',
    { nodes: [node('a', 1, 'fd53:ab:cd:1001::/64')] },
    { a: 'fd53:ab:cd:1::/64' },
  ],
  ['the first of a block counts as none', { nodes: [node('a', 1, 'fd53:ab:cd::/64')] }, { a: 'fd53:ab:cd:1::/64' }],
  ['nor does what is malformed', { nodes: [node('a', 1, 'FD53:ab:cd:7::/64')] }, { a: 'fd53:ab:cd:1::/64' }],
  [
    'of two with the same the one that was listed with it keeps it, whatever their ages say',
    {
      nodes: [node('evil', 1, 'fd53:ab:cd:1::/64', older), node('listed', 1, 'fd53:ab:cd:1::/64')],
      slices: [slice('listed', 'fd53:ab:cd:1::/64')],
    },
    { evil: 'fd53:ab:cd:2::/64', listed: 'fd53:ab:cd:1::/64' },
  ],
  [
    'a node that lost its annotation gets again what it was listed with, and nobody else does',
    { nodes: [node('b', 1, undefined, older), node('a', 1)], slices: [slice('a', 'fd53:ab:cd:1::/64')] },
    { b: 'fd53:ab:cd:2::/64', a: 'fd53:ab:cd:1::/64' },
  ],
  [
    'but not where that was released: another Node of its name had it',
    {
      nodes: [node('a', 1)],
      slices: [slice('a', 'fd53:ab:cd:1::/64')],
      cooling: [parsePrefix('fd53:ab:cd:1::/64')],
    },
    { a: 'fd53:ab:cd:2::/64' },
  ],
  [
    'one that was released a moment ago, and one of a Node that is gone, are given last',
    {
      nodes: [node('a', 1)],
      cooling: [parsePrefix('fd53:ab:cd:1::/64')],
      slices: [slice('gone', 'fd53:ab:cd:2::/64')],
    },
    { a: 'fd53:ab:cd:3::/64' },
  ],
])('%s', (_, world, locators) =>
  expect(show({ sites: [site(1, first), site(2, second)], ...world }).locators).toEqual(locators),
);

test('without a prefix nothing is given, and what nodes and Sites have is taken away', () => {
  const world = { prefix: undefined, sites: [site(1, first)], nodes: [node('a', 1, 'fd53:ab:cd:1::/64')] };
  expect(plan(world)).toEqual({
    blocks: new Map(),
    locators: new Map([['a', undefined]]),
    isGiving: false,
    shortages: [],
  });
});

test('the Mesh "default" has the prefix, no other', () => {
  const mesh = (name: string, l2?: NonNullable<Mesh['spec']['l2']>): Mesh => ({
    apiVersion,
    kind: 'Mesh',
    metadata: { name },
    spec: l2 ? { l2 } : {},
  });
  expect(locatorPrefixOf([mesh('other', { locatorPrefix: PREFIX })])).toBeUndefined();
  expect(locatorPrefixOf([mesh('default')])).toBeUndefined();
  expect(locatorPrefixOf([mesh('other'), mesh('default', { locatorPrefix: PREFIX })])).toBe(PREFIX);
});

test('a full block makes its own nodes wait: 4,095 have a locator, the others lose what does not count', () => {
  const nodes = Array.from({ length: 4096 }, (_, index) => node(`n${String(index).padStart(4, '0')}`, 1));
  const late = node('zz', 1, 'fd53:ab:cd:1001::/64', '2026-01-03T00:00:00Z');
  const { shortages, locators } = plan({
    sites: [site(1), site(2, second)],
    nodes: [...nodes, late, node('other', 2)],
  });
  expect(shortages).toEqual([{ site: 's1', block: first, nodes: ['n4095', 'zz'] }]);
  expect(new Set([...locators.values()]).size).toBe(4095 + 1 + 1);
  expect([locators.get('other'), locators.get('zz'), locators.has('zz')]).toEqual([
    'fd53:ab:cd:1002::/64',
    undefined,
    true,
  ]);
});

test('released locators are given when nothing else is free', () => {
  const nodes = Array.from({ length: 4095 }, (_, index) => node(`n${index}`, 1));
  const { shortages } = plan({ sites: [site(1)], nodes, cooling: [parsePrefix('fd53:ab:cd:1::/64')] });
  expect(shortages).toEqual([]);
});

test('a prefix of /48 has blocks for 16 Sites: the 17th and its nodes wait', () => {
  const sites = Array.from({ length: 17 }, (_, index) => site(index + 1));
  expect(plan({ sites, nodes: [node('x', 17), node('y', 1)] })).toMatchObject({
    shortages: [{ site: 's17', nodes: ['x'] }],
    isGiving: true,
  });
});

describe('a prefix that holds other addresses of the network', () => {
  const cluster = { apiServers: [parseAddress('fd53:ab:cd:5::1')], services: [parsePrefix('fd53:ab:cd:6::/112')] };
  const within = (spec: Partial<Site['spec']>): Site => ({ ...site(1, first), spec: { ...site(1).spec, ...spec } });
  test.each<[string, Partial<LocatorWorld>, string]>([
    ['nodes', { sites: [within({ nodeCidrs: ['fd53:ab:cd:7::/64'] })] }, 'nodeCidrs of Site s1 (fd53:ab:cd:7::/64)'],
    [
      'pods',
      { sites: [within({ podCidrAssignments: [{ cidrBlocks: ['fd53:ab::/32'] }] })] },
      'cidrBlocks of Site s1 (fd53:ab::/32)',
    ],
    ['Services', { sites: [site(1, first)], cluster: { ...cluster, apiServers: [] } }, 'Services (fd53:ab:cd:6::/112)'],
    [
      'an API server',
      { sites: [site(1, first)], cluster: { ...cluster, services: [] } },
      'API server (fd53:ab:cd:5::1)',
    ],
  ])('%s: nothing is given, and what stands goes on', (_, world, named) => {
    const { blocks, locators, isGiving, refusal } = plan({ nodes: [node('a', 1)], ...world });
    expect([Object.fromEntries(blocks), locators.size, isGiving]).toEqual([{ s1: first }, 0, false]);
    expect(refusal?.reason).toBe('LocatorPrefixOverlaps');
    expect(refusal?.message).toContain(`spec.l2.locatorPrefix of Mesh default is ${PREFIX} and overlaps`);
    expect(refusal?.message).toContain(named);
  });

  test.each(['10.0.0.0/8', 'fd53::/16', 'fd53:ab:cd:1::/64', 'x'])('%s is none', (prefix) => {
    expect(plan({ prefix, sites: [site(1)] }).refusal?.reason).toBe('InvalidLocatorPrefix');
  });
});

/** Blocks and locators that are kept, lost, of others, and of nobody. */
const blockText = fc.constantFrom(undefined, first, second, third, 'fd99::/52');
const locatorText = fc.oneof(
  fc.constantFrom(undefined, 'fd99::/64', 'x', 'fd53:ab:cd::/64'),
  fc
    .tuple(fc.nat({ max: 2 }), fc.nat({ max: 6 }))
    .map(([block, index]) =>
      block + index === 0 ? 'fd53:ab:cd::/64' : `fd53:ab:cd:${block ? `${block}00${index}` : index}::/64`,
    ),
);
const worlds = fc
  .tuple(
    fc.array(blockText, { minLength: 1, maxLength: 4 }),
    fc.array(fc.tuple(fc.integer({ min: 1, max: 5 }), locatorText, fc.boolean()), { maxLength: 12 }),
    fc.array(fc.tuple(fc.nat({ max: 11 }), locatorText), { maxLength: 3 }),
  )
  .map(([blocks, nodes, records]) => ({
    sites: blocks.map((block, index) => site(index + 1, block)),
    nodes: nodes.map(([number, locator, isOld], index) =>
      node(`n${index}`, number, locator, isOld ? older : undefined),
    ),
    slices: records.flatMap(([index, locator]) => (locator === undefined ? [] : [slice(`n${index}`, locator)])),
  }));

test('no two nodes share a locator, and each is inside of its Site’s block', () => {
  fc.assert(
    fc.property(worlds, (world) => {
      const { blocks, locators } = plan(world);
      const given = [...locators.values()].filter((text) => text !== undefined);
      expect(new Set(given).size).toBe(given.length);
      expect(new Set(blocks.values()).size).toBe(world.sites.length);
      for (const { name, internalIPs } of world.nodes) {
        const block = blocks.get(`s${internalIPs[0]!.split('.')[1]}`);
        expect(locators.has(name)).toBe(block !== undefined);
        if (block === undefined) continue;
        expect(containsPrefix(parsePrefix(block), parsePrefix(locators.get(name)!))).toBe(true);
        expect(locators.get(name)!.replace('/64', '/52')).not.toBe(block);
      }
    }),
  );
});

test('the order of the input does not matter', () => {
  fc.assert(
    fc.property(worlds, (world) => {
      const sorted = (one: Partial<LocatorWorld>) => {
        const { blocks, locators } = plan(one);
        return { blocks: Object.fromEntries(blocks), locators: Object.fromEntries(locators) };
      };
      expect(sorted({ ...world, sites: world.sites.toReversed(), nodes: world.nodes.toReversed() })).toEqual(
        sorted(world),
      );
    }),
  );
});

test('what was given stays: a second plan gives nothing and changes nothing', () => {
  fc.assert(
    fc.property(worlds, (world) => {
      const before = plan(world);
      const sites = world.sites.map((one, index) => site(index + 1, before.blocks.get(one.metadata.name)));
      const nodes = world.nodes.map(({ name, createdAt, internalIPs, l2Locator }) => {
        const locator = before.locators.has(name) ? before.locators.get(name) : l2Locator;
        return node(name, Number(internalIPs[0]!.split('.')[1]), locator, createdAt);
      });
      const after = plan({ ...world, sites, nodes });
      expect([after.isGiving, after.blocks, after.locators]).toEqual([false, before.blocks, before.locators]);
    }),
  );
});
