import type { GatewayPool, Site, SiteNodeSlice } from '@unbounded/crds';
import { type NodeFacts, nodeFacts, poolOf } from '@unbounded/membership';
import fc from 'fast-check';
import { expect, test } from 'vitest';

import { planMembership } from './membership.plan.ts';
import { diffSlices, planSlices } from './slices.plan.ts';

const keyOf = (name: string): string => Buffer.alloc(32, name.padEnd(4, '-')).toString('base64');
const apiVersion = 'net.unbounded-cloud.io/v1alpha1';
const site = (name: string, nodeCidrs = ['10.1.0.0/16']): Site => ({
  apiVersion,
  kind: 'Site',
  metadata: { name, uid: `uid-${name}` },
  spec: { nodeCidrs, podCidrAssignments: [{ cidrBlocks: ['100.64.0.0/16'] }] },
});
interface Init {
  readonly name: string;
  readonly hasKey?: boolean;
  readonly isSelected?: boolean;
  readonly hasExternal?: boolean;
}
const node = ({ name, hasKey = true, isSelected = false, hasExternal = false }: Init): NodeFacts =>
  nodeFacts({
    metadata: {
      name,
      labels: isSelected ? { gateway: 'p' } : {},
      annotations: hasKey ? { 'net.unbounded-cloud.io/wg-pubkey': keyOf(name) } : {},
    },
    status: {
      addresses: [
        { type: 'InternalIP', address: `10.1.${Number(name.slice(1)) >> 8}.${Number(name.slice(1)) & 255}` },
        ...(hasExternal ? [{ type: 'ExternalIP', address: `192.0.2.${Number(name.slice(1)) + 1}` }] : []),
      ],
    },
  });
const pool = (listed: readonly string[], type: 'External' | 'Internal' = 'External'): GatewayPool => ({
  apiVersion,
  kind: 'GatewayPool',
  metadata: { name: 'p' },
  spec: { type, nodeSelector: { gateway: 'p' } },
  status: { nodes: listed.map((name) => ({ name, wireGuardPublicKey: keyOf(name) })) },
});
const many = (count: number): NodeFacts[] =>
  Array.from({ length: count }, (_, index) => node({ name: `n${String(index).padStart(5, '0')}` }));
const inSlices = (slices: readonly SiteNodeSlice[]) =>
  slices.flatMap(({ nodes = [] }) => nodes.map(({ name }) => name));

test.each([
  [0, []],
  [1, [1]],
  [500, [500]],
  [501, [500, 1]],
  [1250, [500, 500, 250]],
])('%i nodes make slices of %j', (count, sizes) => {
  const slices = planSlices(site('a'), many(count), []);
  expect(slices.map(({ nodes }) => nodes?.length)).toEqual(sizes);
  expect(slices.map(({ metadata }) => metadata.name)).toEqual(sizes.map((_, index) => `a-${index}`));
  expect(slices.map(({ nodeCount }) => nodeCount)).toEqual(sizes);
});

const writesFor = (observed: readonly SiteNodeSlice[], nodes: readonly NodeFacts[]) => {
  const { create, update, remove } = diffSlices(observed, planSlices(site('a'), nodes, observed));
  return [create, update, remove].map((slices) => slices.map(({ metadata }) => metadata.name));
};

test('a node that comes or goes changes one slice: no other node leaves its own', () => {
  const nodes = many(1600);
  const observed = planSlices(site('a'), nodes, []);
  expect(writesFor(observed, [...nodes, node({ name: 'a00000' })])).toEqual([[], ['a-3'], []]);
  expect(writesFor(observed, nodes.slice(1))).toEqual([[], ['a-0'], []]);
  expect(writesFor(observed, nodes.slice(0, 1500))).toEqual([[], [], ['a-3']]);
  const [, ...later] = observed;
  expect(writesFor(later, [...nodes.slice(500), node({ name: 'a00000' })])).toEqual([['a-0'], [], []]);
});

test('a slice that somebody else made has no say in where a node is', () => {
  const nodes = many(2);
  const [own] = planSlices(site('a'), nodes, []);
  const foreign = [
    { ...own!, metadata: { ...own!.metadata, name: 'x' }, sliceIndex: 7 },
    { ...own!, metadata: { ...own!.metadata, name: 'a--1' }, sliceIndex: -1 },
    { ...own!, metadata: { ...own!.metadata, name: 'a-9' }, siteName: 'b', sliceIndex: 9 },
  ];
  expect(planSlices(site('a'), nodes, foreign)).toEqual([own]);
});

test('no node is ever in neither a slice nor a pool', () => {
  const init = fc.record({
    hasKey: fc.boolean(),
    isSelected: fc.boolean(),
    hasExternal: fc.boolean(),
    isListed: fc.boolean(),
  });
  fc.assert(
    fc.property(
      fc.array(init, { maxLength: 8 }),
      fc.constantFrom('External' as const, 'Internal' as const),
      (inits, type) => {
        const nodes = inits.map((entry, index) => node({ name: `n${index}`, ...entry }));
        const listed = inits.flatMap(({ isListed }, index) => (isListed ? [`n${index}`] : []));
        const [plan] = planMembership({
          sites: [site('a')],
          pools: [pool(listed, type)],
          peerings: [],
          slices: [],
          nodes,
        }).sites;
        const sliced = inSlices(plan!.slices);
        for (const { name } of nodes) expect(sliced.includes(name) || listed.includes(name)).toBe(true);
        // And a gateway that its pool lists is not in a slice.
        for (const entry of nodes) {
          if (listed.includes(entry.name) && poolOf(entry, [pool(listed, type)]))
            expect(sliced).not.toContain(entry.name);
        }
        expect(plan!.nodeCount).toBe(sliced.length);
        expect(plan!.members.length).toBe(nodes.length);
      },
    ),
  );
});

test('the order of the input does not matter', () => {
  const nodes = many(30);
  fc.assert(
    fc.property(fc.shuffledSubarray(nodes, { minLength: 30, maxLength: 30 }), (shuffled) => {
      const plan = (list: readonly NodeFacts[]) =>
        planMembership({ sites: [site('a')], pools: [], peerings: [], slices: [], nodes: list }).sites;
      expect(plan(shuffled)).toEqual(plan(nodes));
    }),
  );
});

test('what the diff writes makes the next diff empty', () => {
  const size = fc.integer({ min: 0, max: 1100 });
  fc.assert(
    fc.property(size, size, (before, after) => {
      const observed = planSlices(site('a'), many(before), []);
      const desired = planSlices(site('a'), many(after), observed);
      const { create, update, remove } = diffSlices(observed, desired);
      const replaced = new Map(observed.map((slice) => [slice.metadata.name, slice]));
      for (const slice of [...create, ...update]) replaced.set(slice.metadata.name, slice);
      for (const { metadata } of remove) replaced.delete(metadata.name);
      expect(diffSlices([...replaced.values()], desired)).toEqual({ create: [], update: [], remove: [] });
    }),
    { numRuns: 20 },
  );
});

test('slices of a site that no longer exists are removed', () => {
  expect(diffSlices(planSlices(site('gone'), many(2), []), [])).toMatchObject({
    remove: [{ metadata: { name: 'gone-0' } }],
  });
});

test('slices have no owner, so that a foreground deletion of their site leaves them; those of earlier versions lose theirs', () => {
  const [own] = planSlices(site('a'), many(2), []);
  expect(own!.metadata).toEqual({ name: 'a-0' });
  const ownerReferences = [{ apiVersion, kind: 'Site', name: 'a', uid: 'uid-a', controller: true }];
  const former = { ...own!, metadata: { name: 'a-0', resourceVersion: '7', ownerReferences } };
  const { update } = diffSlices([former], [own!]);
  expect(update.map(({ metadata }) => metadata)).toEqual([{ name: 'a-0', resourceVersion: '7' }]);
});

test('a slice changed by hand is put right, with the version that was seen', () => {
  const [desired] = planSlices(site('a'), many(2), []);
  const touched = { ...desired!, metadata: { ...desired!.metadata, resourceVersion: '9' }, nodeCount: 7 };
  expect(diffSlices([touched], [desired!]).update).toMatchObject([
    { nodeCount: 2, metadata: { resourceVersion: '9' } },
  ]);
});

test('a slice carries the locators that its nodes may use, and without them is what it was', () => {
  const facts = (name: string, l2Locator?: string): NodeFacts => ({
    ...node({ name }),
    ...(l2Locator === undefined ? {} : { l2Locator }),
  });
  const nodes = [facts('n1', 'fd53:ab:cd:1::/64'), facts('n2')];
  const listedOf = (subject: Site) =>
    planMembership({ sites: [subject], pools: [], peerings: [], slices: [], nodes }).sites[0]?.slices[0]?.nodes;
  expect(JSON.stringify(listedOf(site('a')))).not.toContain('l2Locator');
  const listed = listedOf({ ...site('a'), status: { l2LocatorBlock: 'fd53:ab:cd::/52' } });
  expect(listed?.map(({ l2Locator }) => l2Locator)).toEqual(['fd53:ab:cd:1::/64', undefined]);
  expect(listed?.[1]).not.toHaveProperty('l2Locator');
});
