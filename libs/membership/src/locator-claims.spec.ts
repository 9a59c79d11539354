import type { GatewayPool, Site, SiteNodeSlice } from '@unbounded/crds';
import { expect, test } from 'vitest';

import { type NodeFacts, settleNodes } from './index.ts';
import { type Init, node, pool, site, slice } from './settle.testdata.ts';

const withBlock = (one: Site, l2LocatorBlock: string): Site => ({ ...one, status: { l2LocatorBlock } });
const [a, b] = [site('a', '10.1.0.0/16', '100.64.0.0/16'), site('b', '10.2.0.0/16', '100.65.0.0/16')];
const sites = [withBlock(a, 'fd53:ab:cd::/52'), withBlock(b, 'fd53:ab:cd:1000::/52')];

interface World {
  readonly sites?: readonly Site[];
  readonly slices?: readonly SiteNodeSlice[];
  readonly pools?: readonly GatewayPool[];
}
/** What each node is left with, and its problems. */
const settle = (nodes: readonly NodeFacts[], world: World = {}) =>
  Object.fromEntries(
    settleNodes({ sites, slices: [], pools: [], ...world, nodes }).map(({ facts, problems }) => [
      facts.name,
      [facts.l2Locator, ...problems.map(({ reason }) => reason)],
    ]),
  );
const OWN = 'fd53:ab:cd:1::/64';
const inA = (name: string, locator: string, rest: Init = {}) =>
  node(name, { ip: [`10.1.${name.length}.${name.charCodeAt(0)}`], locator, ...rest });

test.each<[string, string]>([
  ['of another Site', 'fd53:ab:cd:1001::/64'],
  ['of no Site', 'fd99::/64'],
  ['that is the block’s own first', 'fd53:ab:cd::/64'],
])('a locator %s does not count, and the Node is told', (_, locator) => {
  expect(settle([inA('evil', locator), inA('n', OWN)])).toEqual({
    evil: [undefined, 'L2LocatorOutsideSite'],
    n: [OWN],
  });
});

test('a malformed one is no locator of anybody', () => {
  expect(settle([inA('evil', 'FD53:ab:cd:1::/64', { age: 1 }), inA('n', OWN)])).toEqual({
    evil: [undefined, 'InvalidL2Locator'],
    n: [OWN],
  });
});

test('of two with one locator the node that a slice lists with it keeps it, whatever names and ages say', () => {
  const nodes = [inA('a-evil', OWN, { age: 1 }), inA('victim', OWN)];
  const listed = slice([{ name: 'victim', l2Locator: OWN }]);
  expect(settle(nodes, { slices: [listed] })).toEqual({ 'a-evil': [undefined, 'L2LocatorTaken'], victim: [OWN] });
});

test('a gateway keeps its locator by the status of its pool', () => {
  const nodes = [inA('evil', OWN, { age: 1 }), inA('gw', OWN, { labels: { gw: 'p' } })];
  const pools = [pool([{ name: 'gw', wireGuardPublicKey: '', l2Locator: OWN }])];
  expect(settle(nodes, { pools })).toEqual({ evil: [undefined, 'L2LocatorTaken'], gw: [OWN] });
});

test('of claims that nothing lists yet, as slices of an older controller do not, the older Node’s counts', () => {
  const listed = slice([{ name: 'young' }, { name: 'old' }]);
  expect(settle([inA('young', OWN), inA('old', OWN, { age: 1 })], { slices: [listed] })).toEqual({
    young: [undefined, 'L2LocatorTaken'],
    old: [OWN],
  });
});

test('in a Site without a block no locator counts, and none is wrong', () => {
  expect(settle([inA('n', OWN)], { sites: [a, b] })).toEqual({ n: [undefined] });
  expect(settle([inA('n', OWN)], { sites: [withBlock(a, 'x')] })).toEqual({ n: [undefined] });
});

test('a gateway of no Site has no locator', () => {
  const nodes = [node('gw', { ip: ['192.0.2.1'], locator: OWN, labels: { gw: 'p' } }), inA('n', OWN)];
  const settled = settle(nodes, { pools: [pool([{ name: 'gw', wireGuardPublicKey: '', l2Locator: OWN }])] });
  expect([settled['gw']?.[0], settled['n']]).toEqual([undefined, [OWN]]);
});
