import type { GatewayPool, SiteNodeSlice } from '@unbounded/crds';
import { overlaps, parsePrefix } from '@unbounded/ip';
import fc from 'fast-check';
import { expect, test } from 'vitest';

import { type NodeFacts, type SettledNode, settleNodes } from './index.ts';
import { keyOf, node, pool, sites, slice } from './settle.testdata.ts';

const settle = (nodes: readonly NodeFacts[], slices: SiteNodeSlice[] = [], pools: GatewayPool[] = []) =>
  new Map(settleNodes({ nodes, sites, slices, pools }).map((entry) => [entry.facts.name, entry]));
const show = ({ facts, problems }: SettledNode) => ({
  key: facts.wireGuardPublicKey,
  next: facts.wireGuardNextPublicKey,
  ip: facts.internalIPs.join(),
  pods: facts.podCIDRs.join(),
  reasons: problems.map(({ reason }) => reason).join(),
});

test('a key stays with the node that slices list with it, whatever names and ages say', () => {
  const nodes = [
    node('a-evil', { ip: ['10.1.0.9'], key: 1, age: 1 }),
    node('s1-g1', { ip: ['10.1.0.1'], key: 1, age: 5 }),
  ];
  const settled = settle(nodes, [slice([{ name: 's1-g1', wireGuardPublicKey: keyOf(1) }])]);
  expect(show(settled.get('s1-g1')!)).toMatchObject({ key: keyOf(1), reasons: '' });
  expect(show(settled.get('a-evil')!)).toMatchObject({ key: undefined, ip: '10.1.0.9', reasons: 'WireGuardKeyTaken' });
  expect(settled.get('a-evil')!.problems[0]!.message).toContain('is that of node s1-g1');
});

test('a gateway keeps its key by the status of its pool', () => {
  const nodes = [
    node('evil', { ip: ['10.1.0.9'], key: 1, age: 1 }),
    node('g', { ip: ['10.2.0.1'], key: 1, labels: { gw: 'p' } }),
  ];
  const settled = settle(nodes, [], [pool([{ name: 'g', wireGuardPublicKey: keyOf(1) }])]);
  expect(settled.get('g')!.facts.wireGuardPublicKey).toBe(keyOf(1));
  expect(settled.get('evil')!.facts.wireGuardPublicKey).toBeUndefined();
});

test('of claims that nothing lists yet the older Node’s counts, then the uid’s order', () => {
  const older = settle([node('a', { ip: ['10.1.0.1'], key: 1 }), node('z', { ip: ['10.1.0.2'], key: 1, age: 2 })]);
  expect([...older.values()].map(({ facts }) => facts.wireGuardPublicKey)).toEqual([undefined, keyOf(1)]);
});

test('a next key that is listed cannot be claimed by a newcomer, as current or as next key', () => {
  const rotating = node('v', { ip: ['10.1.0.1'], key: 1, next: 2 });
  const listed = slice([{ name: 'v', wireGuardPublicKey: keyOf(1), wireGuardNextPublicKey: keyOf(2) }]);
  for (const claim of [{ key: 2 }, { key: 3, next: 2 }, { key: 3, next: 1 }]) {
    const settled = settle([node('evil', { ip: ['10.1.0.9'], age: 1, ...claim }), rotating], [listed]);
    expect(show(settled.get('v')!)).toMatchObject({ key: keyOf(1), next: keyOf(2), reasons: '' });
    expect(show(settled.get('evil')!)).toMatchObject({ next: undefined, reasons: 'WireGuardKeyTaken' });
  }
  const promoted = settle([node('v', { ip: ['10.1.0.1'], key: 2 })], [listed]);
  expect(show(promoted.get('v')!)).toMatchObject({ key: keyOf(2), reasons: '' });
});

test('a node that drops its key releases it; one that is re-created takes its own again', () => {
  const listed = slice([{ name: 'v', wireGuardPublicKey: keyOf(1) }]);
  const released = settle([node('v', { ip: ['10.1.0.1'], key: 4 }), node('w', { ip: ['10.1.0.2'], key: 1 })], [listed]);
  expect(released.get('w')!.facts.wireGuardPublicKey).toBe(keyOf(1));
  const again = settle(
    [node('v', { ip: ['10.1.0.1'], key: 1, age: 9 }), node('w', { ip: ['10.1.0.2'], key: 1 })],
    [listed],
  );
  expect(again.get('v')!.facts.wireGuardPublicKey).toBe(keyOf(1));
  expect(again.get('w')!.facts.wireGuardPublicKey).toBeUndefined();
});

test('internal addresses count only inside the node’s own Site; the first claimant keeps one', () => {
  const settled = settle(
    [
      node('evil', { ip: ['10.1.0.9', '8.8.8.8', '198.51.100.53', '10.2.0.1', '10.1.0.31'], age: 1 }),
      node('victim', { ip: ['10.1.0.31'] }),
    ],
    [slice([{ name: 'victim', internalIPs: ['10.1.0.31'] }])],
  );
  expect(show(settled.get('evil')!)).toMatchObject({ ip: '10.1.0.9', reasons: 'AddressOutsideSite,AddressTaken' });
  expect(settled.get('evil')!.problems[0]!.message).toContain(
    '8.8.8.8, 198.51.100.53, 10.2.0.1 is not in spec.nodeCidrs of Site a',
  );
  expect(show(settled.get('victim')!)).toMatchObject({ ip: '10.1.0.31', reasons: '' });
});

test('pod CIDRs count only inside the node’s own Site, and a more specific or wider one of another is none', () => {
  const settled = settle(
    [
      node('evil', {
        ip: ['10.1.0.9'],
        pods: ['100.65.31.5/32', '100.64.0.0/17', '100.64.5.7/32', '100.64.200.0/24'],
        age: 1,
      }),
      node('victim', { ip: ['10.1.0.31'], pods: ['100.64.5.0/24'] }),
    ],
    [slice([{ name: 'victim', podCIDRs: ['100.64.5.0/24'] }])],
  );
  expect(show(settled.get('evil')!)).toMatchObject({
    pods: '100.64.200.0/24',
    reasons: 'PodCIDRsOutsideSite,PodCIDRTooWide,PodCIDRTaken',
  });
  expect(show(settled.get('victim')!)).toMatchObject({ pods: '100.64.5.0/24', reasons: '' });
});

test('a block wider than what nodes of the Site get is used of those alone who were listed with it', () => {
  const wide = ['100.64.0.0/16', '100.64.128.0/17', '100.64.4.0/23'];
  const settled = settle(
    [node('greedy', { ip: ['10.1.0.1'], pods: wide }), node('early', { ip: ['10.1.0.2'], pods: ['100.64.8.0/23'] })],
    [slice([{ name: 'early', podCIDRs: ['100.64.8.0/23'] }])],
  );
  expect(show(settled.get('greedy')!)).toMatchObject({ pods: '', reasons: 'PodCIDRTooWide' });
  expect(settled.get('greedy')!.problems[0]!.message).toContain('is wider than the /24 that a node of Site a gets');
  expect(show(settled.get('early')!)).toMatchObject({ pods: '100.64.8.0/23', reasons: '' });
});

test('a block around several pools that lie side by side is too wide, in one assignment or in two', () => {
  const [a, b] = sites;
  const greedy = node('greedy', { ip: ['10.1.0.1'], pods: ['100.66.0.0/15'] });
  for (const podCidrAssignments of [
    [{ cidrBlocks: ['100.66.0.0/16', '100.67.0.0/16'] }],
    [{ cidrBlocks: ['100.66.0.0/16'] }, { cidrBlocks: ['100.67.0.0/16'], nodeBlockSizes: { ipv4: 20 } }],
  ]) {
    const changed = [{ ...a!, spec: { ...a!.spec, podCidrAssignments } }, b!];
    const [settled] = settleNodes({ nodes: [greedy], sites: changed, slices: [], pools: [] });
    expect(show(settled!)).toMatchObject({ pods: '', reasons: 'PodCIDRTooWide' });
  }
});

test('where another program assigns blocks, or the Site gives wider ones, they have any width', () => {
  const [a, b] = sites;
  const block = { cidrBlocks: ['100.64.0.0/16', 'fd64::/48'] };
  const greedyNode = node('greedy', { ip: ['10.1.0.1'], pods: ['100.64.4.0/23', 'fd64:0:0:8::/61'] });
  const changedSite = (spec: object, assignment: object = {}) => [
    { ...a!, spec: { ...a!.spec, podCidrAssignments: [{ ...block, ...assignment }], ...spec } },
    b!,
  ];
  const widthOf = (assignment: object): string =>
    settleNodes({
      nodes: [greedyNode],
      sites: changedSite({}, assignment),
      slices: [],
      pools: [],
    })[0]!.facts.podCIDRs.join();
  expect(widthOf({})).toBe('');
  const others = changedSite({ manageCniPlugin: false });
  expect(settleNodes({ nodes: [greedyNode], sites: others, slices: [], pools: [] })[0]!.facts.podCIDRs).toHaveLength(2);
  expect(widthOf({ assignmentEnabled: false })).toBe('100.64.4.0/23,fd64:0:0:8::/61');
  expect(widthOf({ nodeBlockSizes: { ipv4: 20, ipv6: 60 } })).toBe('100.64.4.0/23,fd64:0:0:8::/61');
  expect(widthOf({ nodeBlockSizes: { ipv4: 24, ipv6: 60 } })).toBe('fd64:0:0:8::/61');
});

test('a block that was listed and lies in no other Site stays, and is told; one of another Site goes', () => {
  const listed = slice([
    { name: 'n', podCIDRs: ['10.200.0.0/24'] },
    { name: 'moved', podCIDRs: ['100.65.3.0/24'] },
  ]);
  const settled = settle(
    [
      node('n', { ip: ['10.1.0.1'], pods: ['10.200.0.0/24'] }),
      node('moved', { ip: ['10.1.0.2'], pods: ['100.65.3.0/24'] }),
    ],
    [listed],
  );
  expect(show(settled.get('n')!)).toMatchObject({ pods: '10.200.0.0/24', reasons: 'PodCIDRsOutsideSite' });
  expect(show(settled.get('moved')!)).toMatchObject({ pods: '', reasons: 'PodCIDRsOutsideSite' });
  expect(settled.get('moved')!.problems[0]!.message).toContain('delete the Node object and register the node anew');
  expect(show(settle([node('n', { ip: ['10.1.0.1'], pods: ['10.200.0.0/24'] })]).get('n')!).pods).toBe('');
});

test('an external address that an administrator set is never lost; one that a node set is, to the first', () => {
  const gw = { labels: { gw: 'p' } };
  const settled = settle(
    [
      node('self', { ip: ['10.1.0.1'], external: ['192.0.2.1'], age: 1, ...gw }),
      node('set', { ip: ['10.1.0.2'], annotated: '192.0.2.1', ...gw }),
      node('too', { ip: ['10.1.0.3'], annotated: '192.0.2.1', ...gw }),
    ],
    [],
    [pool()],
  );
  expect([...settled.values()].map(({ facts }) => facts.externalIPs.length)).toEqual([0, 1, 1]);
  expect(settled.get('self')!.problems).toMatchObject([{ reason: 'AddressTaken' }]);
});

test('a node that is listed nowhere claims nothing', () => {
  const settled = settle([
    node('stray', { ip: ['192.0.2.9'], key: 1, age: 1 }),
    node('n', { ip: ['10.1.0.1'], key: 1 }),
  ]);
  expect(settled.get('n')!.facts.wireGuardPublicKey).toBe(keyOf(1));
});

const clusters = fc
  .uniqueArray(
    fc.record({
      name: fc.stringMatching(/^[a-z]{1,3}$/),
      ip: fc.uniqueArray(fc.constantFrom('10.1.0.1', '10.1.0.2', '10.2.0.1', '10.2.0.2', '8.8.8.8'), { maxLength: 3 }),
      external: fc.uniqueArray(fc.constantFrom('192.0.2.1', '192.0.2.2', '10.1.0.1'), { maxLength: 2 }),
      key: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
      next: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
      pods: fc.uniqueArray(
        fc.constantFrom(
          '100.64.0.0/24',
          '100.64.0.0/17',
          '100.64.0.9/32',
          '100.65.1.0/24',
          '100.65.1.0/25',
          '10.9.0.0/24',
        ),
        { maxLength: 3 },
      ),
      age: fc.integer({ min: 1, max: 3 }),
      labels: fc.constantFrom({}, { gw: 'p' }),
    }),
    { selector: ({ name }) => name, minLength: 2, maxLength: 8 },
  )
  .map((all) =>
    all.map(({ name, key, next, ...init }) =>
      node(name, { ...init, ...(key ? { key } : {}), ...(next ? { next } : {}) }),
    ),
  );

const listOf = (settled: readonly SettledNode[]): SiteNodeSlice =>
  slice(
    settled.map(({ facts }) => ({
      name: facts.name,
      ...(facts.wireGuardPublicKey ? { wireGuardPublicKey: facts.wireGuardPublicKey } : {}),
      ...(facts.wireGuardNextPublicKey ? { wireGuardNextPublicKey: facts.wireGuardNextPublicKey } : {}),
      internalIPs: facts.internalIPs,
      podCIDRs: facts.podCIDRs,
    })),
  );

test('each key, address and pod address is one node’s; newcomers take nothing from those who are listed', () => {
  fc.assert(
    fc.property(clusters, clusters, (first, newcomers) => {
      const before = settleNodes({ nodes: first, sites, slices: [], pools: [pool()] }).filter(
        ({ site: own, facts }) => own || facts.labels['gw'],
      );
      const record = listOf(before);
      const names = new Set(first.map(({ name }) => name));
      const nodes = [...first, ...newcomers.filter(({ name }) => !names.has(name))];
      const after = settleNodes({ nodes, sites, slices: [record], pools: [pool()] });
      const listed = after.filter(({ site: own, facts }) => own || facts.labels['gw']);
      const keys = listed.flatMap(({ facts }) =>
        [facts.wireGuardPublicKey, facts.wireGuardNextPublicKey].filter(Boolean),
      );
      expect(new Set(keys).size).toBe(keys.length);
      const addresses = listed.flatMap(({ facts }) => facts.internalIPs);
      expect(new Set(addresses).size).toBe(addresses.length);
      const blocks = listed.flatMap(({ facts }) =>
        facts.podCIDRs.map((text) => ({ name: facts.name, block: parsePrefix(text) })),
      );
      for (const one of blocks)
        for (const other of blocks) if (one.name !== other.name) expect(overlaps(one.block, other.block)).toBe(false);
      for (const { facts } of before) {
        const now = after.find((entry) => entry.facts.name === facts.name)!.facts;
        expect(now.wireGuardPublicKey).toBe(facts.wireGuardPublicKey);
        expect(now.internalIPs).toEqual(facts.internalIPs);
        expect(now.podCIDRs).toEqual(facts.podCIDRs);
      }
    }),
    { numRuns: 300 },
  );
});

test('5,000 nodes, one of which claims the whole pool, lose nothing to it', () => {
  const nodes = Array.from({ length: 5000 }, (_, index) =>
    node(`n${index}`, {
      ip: [`10.1.${index >> 8}.${index & 255}`],
      pods: [`100.64.${index >> 5}.${(index & 31) * 8}/29`],
    }),
  );
  const settled = settleNodes({
    nodes: [...nodes, node('wide', { ip: ['10.1.200.1'], pods: ['100.64.0.0/16'], age: 6 })],
    sites,
    slices: [],
    pools: [],
  });
  expect(settled.flatMap(({ problems }) => problems)).toHaveLength(1);
});
