import { expect, test } from 'vitest';
import { cellLabel, cellText, matrixSites, measureOf, moveInGrid, reachTexts } from './matrix.ts';
import type { ReachView, SiteView } from './types.ts';

const reach = (over: Partial<ReachView> = {}): ReachView => ({
  ...{ state: 'Reachable', nodes: 4, reaching: 4, via: ['g1'], relayed: 0, rttMs: 12.3, lossRatio: 0.01 },
  ...over,
});

test('a cell says what is asked for, and unknown as nothing but its shape', () => {
  const measures = ['state', 'rtt', 'loss', 'mtu', 'path'] as const;
  expect(measures.map((measure) => cellText(reach(), measure))).toEqual(['', '12.3', '1', '', 'D']);
  const narrow = reach({ pathMtuBytes: 1360, relayed: 4 });
  expect(measures.map((measure) => cellText(narrow, measure))).toEqual(['', '12.3', '1', '1360', 'R']);
  expect(cellText(reach({ relayed: 1 }), 'path')).toBe('D+R');
  const { rttMs: _, lossRatio: __, ...unknown } = reach({ state: 'Unknown', nodes: 0, reaching: 0, via: [] });
  expect(measures.map((measure) => cellText(unknown, measure))).toEqual(['', '', '', '', '']);
  expect(Object.fromEntries(reachTexts(unknown))).toMatchObject({
    Path: 'unknown',
    'Path MTU': 'unknown',
    Via: 'unknown',
    State: 'Unknown',
  });
});

test('the name of a cell has all of it', () => {
  expect(cellLabel('s1', 's2', reach({ reaching: 3, state: 'Partial', relayed: 1 }))).toBe(
    's1 to s2: Partial; Nodes that reach it: 3 of 4 that know of it; Round trip (median, to the next gateway): 12.3 ms; ' +
      'Loss (worst node): 1 %; Path MTU: as the device; Path: direct, from 1 of 4 nodes over the relay; Via: g1',
  );
  expect(cellLabel('s1', 's2', undefined)).toMatch(/no node of the source reports/);
});

test('rows and columns are sites by name, all or those that something is wrong with', () => {
  const sites = { s10: {} as SiteView, s2: {} as SiteView, s1: {} as SiteView };
  const view = { sites, reach: { s1: { s2: reach({ state: 'Partial' }), s10: reach() } } };
  expect(matrixSites(view, {})).toEqual(['s1', 's2', 's10']);
  expect(matrixSites(view, { only: 'affected' })).toEqual(['s1', 's2']);
  expect(matrixSites(view, { q: 'S2 s10' })).toEqual(['s2', 's10']);
});

test.each([
  ['ArrowUp', false, [0, 5]],
  ['ArrowDown', false, [2, 5]],
  ['ArrowLeft', false, [1, 4]],
  ['ArrowRight', false, [1, 6]],
  ['PageDown', false, [9, 5]],
  ['Home', false, [1, 0]],
  ['End', false, [1, 9]],
  ['Home', true, [0, 0]],
  ['End', true, [9, 9]],
  ['x', false, undefined],
] as const)('key %s (control: %s) leads to %j', (key, isControl, to) => {
  expect(moveInGrid(key, isControl, [1, 5], { rows: 10, columns: 10, page: 10 })).toEqual(to);
});

test('an unknown measure is that of states', () => {
  expect([measureOf('rtt'), measureOf('x'), measureOf(undefined)]).toEqual(['rtt', 'state', 'state']);
});
