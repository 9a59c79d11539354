import { expect, test } from 'vitest';
import { linksOf, placesOf } from './topology.ts';
import type { PoolView, ReachState, ReachView, SiteView } from './types.ts';

const site: SiteView = { state: 'Healthy', nodes: 1, reporting: 1, gateways: 0, problems: 0 };
const reach = (state: ReachState, relayed = 0): ReachView => ({ state, nodes: 1, reaching: 1, via: [], relayed });
const sitesOf = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`s${n}`, site]));

const pool = (activeFor: string[], state: PoolView['state'] = 'Healthy'): PoolView => ({
  state,
  gateways: { g1: { state, activeFor }, g2: { state, activeFor: [] } },
  connectedSites: ['s0', 's1', 'gone'],
});

test.each([0, 1, 2, 7, 100])('no two of %i sites and three pools are at one place', (count) => {
  const places = placesOf({ sites: sitesOf(count), pools: { a: pool([]), b: pool([]), c: pool([]) } });
  expect(new Set(places.map(({ x, y }) => `${x} ${y}`)).size).toBe(count + 3);
  expect(places.every(({ x, y }) => Number.isFinite(x) && Number.isFinite(y))).toBe(true);
});

test('a site is linked to its pools, and to sites to which something is wrong', () => {
  const view = {
    sites: sitesOf(3),
    pools: { p: pool(['s0']), q: pool([], 'Unknown') },
    reach: {
      s0: { s1: reach('Reachable'), s2: reach('Reachable', 1) },
      s1: { s2: reach('Reachable') },
      s2: { s1: reach('Partial') },
    },
  };
  const { shown, total } = linksOf(view, undefined);
  expect(shown.map(({ from, to, state, isRelayed }) => [from, to, state, isRelayed])).toEqual([
    ['site/s0', 'pool/p', 'Reachable', false],
    ['site/s1', 'pool/p', 'Unreachable', false],
    ['site/s0', 'pool/q', 'Unknown', false],
    ['site/s1', 'pool/q', 'Unknown', false],
    ['site/s1', 'site/s2', 'Partial', false],
    ['site/s0', 'site/s2', 'Reachable', true],
  ]);
  expect(total).toBe(6);
  expect(
    linksOf(view, 's0')
      .shown.slice(4)
      .map(({ id }) => id),
  ).toEqual(['s0 s1', 's0 s2']);
});

test('a site that is out altogether has no lines to others, unless it is chosen', () => {
  const sites = { ...sitesOf(2), s1: { ...site, state: 'Unreachable' as const } };
  const view = { sites, pools: {}, reach: { s0: { s1: reach('Unreachable') } } };
  expect([linksOf(view, undefined).total, linksOf(view, 's1').total]).toEqual([0, 1]);
});

test('of too many links there is the number', () => {
  const names = Object.keys(sitesOf(30));
  const all = Object.fromEntries(names.map((to) => [to, reach('Unreachable')]));
  const { shown, total } = linksOf(
    { sites: sitesOf(30), pools: {}, reach: Object.fromEntries(names.map((from) => [from, all])) },
    undefined,
  );
  expect([shown.length, total]).toEqual([150, 435]);
});
