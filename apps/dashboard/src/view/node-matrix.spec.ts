import type { NodeReport, PeerStatus } from '@unbounded/status';
import { expect, test } from 'vitest';
import {
  isAffected,
  type Known,
  type NodeCell,
  nodeCellLabel,
  nodeCellTexts,
  nodeMatrix,
  pathLetters,
  sourceNodes,
} from './node-matrix.ts';
import type { NodeView } from './types.ts';

const node = (over: Partial<NodeView> = {}): NodeView => ({
  ...{ site: 's1', pools: [], state: 'Healthy', source: 'report', ready: 'True', problems: 0 },
  ...over,
});

const NODES = {
  w1: node(),
  w2: node({ state: 'Unknown', source: 'none' }),
  g1: node({ pools: ['p1'] }),
  g2: node({ pools: ['p1'], state: 'Degraded' }),
  v1: node({ site: 's2' }),
  h1: node({ site: 's2', pools: ['p2'] }),
};

const peer = (health: object = {}, over: Partial<PeerStatus> = {}): PeerStatus => ({
  ...{ protocol: 'VXLAN', health: { ipv4: { state: 'Healthy', rttMs: 1.5, lossRatio: 0, ...health } }, wireGuard: {} },
  ...over,
});

type Members = Record<string, { readonly tier: number; readonly isActive: boolean; readonly reachesSite?: boolean }>;

const report = (peers: Record<string, PeerStatus>, members: Members = {}): NodeReport => ({
  ...{ agentVersion: '1', isComplete: true, problems: [], drops: {} },
  connectivity: {
    ...{ site: 's1', role: 'worker', dataplane: 'ebpf', peers },
    groups: { 's2 IPv4': { site: 's2', family: 'IPv4', members } },
  },
});

const matrixOf = (known: Record<string, Known>, to = 's2') =>
  nodeMatrix({ from: 's1', to, nodes: NODES }, new Map(Object.entries(known)));

const USED = { tier: 0, isActive: true, reachesSite: true };

test('a worker is shown with its gateways for the site, a gateway with those of the other site; each by its own report', () => {
  const { columns, cells } = matrixOf({
    w1: {
      report: report(
        { g1: peer(), g2: peer({ state: 'Unhealthy' }), w2: peer() },
        { g1: USED, g2: { tier: 0, isActive: false } },
      ),
    },
    g1: { report: report({ w1: peer(), h1: peer({ pathMtuBytes: 1360 }) }, { h1: USED }) },
  });
  expect(columns).toEqual(['g1', 'g2', 'h1']);
  expect(Object.keys(cells['w1']!)).toEqual(['g1', 'g2']);
  expect(cells['w1']!['g1']).toMatchObject({ state: 'Healthy', isUsed: true, rttMs: 1.5, path: 'Direct, by VXLAN' });
  expect(cells['w1']!['g2']).toMatchObject({ state: 'Unhealthy', isUsed: false });
  expect(cells['g1']).toMatchObject({ h1: { state: 'Healthy', pathMtuBytes: 1360 } });
});

test('within a site the columns are its nodes', () => {
  const { columns } = matrixOf({ w1: { report: report({ g1: peer(), h1: peer() }) } }, 's1');
  expect(columns).toEqual(['g1']);
});

test('a node that does not report is Unknown in every column, and never healthy', () => {
  const { cells } = matrixOf({ w1: { report: report({ g1: peer() }, { g1: USED }) }, w2: { why: 'silent' } });
  expect(cells['w2']).toEqual({ g1: { state: 'Unknown', why: 'silent', path: '', pathReasons: [] } });
  const none = matrixOf({ w1: { why: 'silent' }, h1: { why: 'silent' } });
  expect(none.columns).toEqual(['h1']);
  expect(none.cells).toMatchObject({ w1: { h1: { state: 'Unknown' } }, h1: {} });
});

test.each<[what: string, status: PeerStatus | undefined, member: Members[string], state: string, why: RegExp]>([
  ['returns no echo', peer({ forwards: false }), USED, 'Degraded', /no echo/],
  ['denies the site', peer(), { ...USED, reachesSite: false }, 'Degraded', /does not reach the site/],
  ['is not probed', peer({}, { health: {} }), USED, 'Unknown', /does not probe it/],
  ['is no peer', undefined, USED, 'Unknown', /does not probe it/],
])('a gateway that %s is not healthy for the site', (_, status, member, state, why) => {
  const known = report(status ? { g1: status } : {}, { g1: member });
  const cell = matrixOf({ w1: { report: known } }).cells['w1']!['g1']!;
  expect(cell.state).toBe(state);
  expect(cell.why).toMatch(why);
});

const relayed: NodeCell = {
  ...{ state: 'Healthy', isUsed: true, rttMs: 12.3, lossRatio: 0.01, path: 'Relayed' },
  pathReasons: ['UDP is blocked'],
};

test('a cell says all of it, the reason of its path too', () => {
  expect(Object.fromEntries(nodeCellTexts(relayed))).toEqual({
    ...{ State: 'Healthy', 'Packets to the site': 'go there now', 'Round trip': '12.3 ms', Loss: '1 %' },
    ...{ 'Path MTU': 'as the device', Path: 'Relayed', 'Why that path': 'UDP is blocked' },
  });
  expect(nodeCellLabel('w1', 'g1', relayed)).toMatch(/^w1 to g1: Healthy; .*Why that path: UDP is blocked$/);
  expect(nodeCellLabel('w1', 'g1', undefined)).toMatch(/does not probe it/);
  expect(['Relayed', 'Direct, by VXLAN', 'Direct and Relayed', ''].map(pathLetters)).toEqual(['R', 'D', 'D+R', '']);
});

test('affected is what is not healthy, relayed, or said by nobody', () => {
  const healthy: NodeCell = { state: 'Healthy', path: 'Direct', pathReasons: [] };
  expect(
    [{ g1: healthy }, { g1: relayed }, { g1: { ...healthy, state: 'Recovering' } }, {}, undefined].map(isAffected),
  ).toEqual([false, true, true, true, true]);
});

test('nodes that something is wrong with come first', () => {
  expect(sourceNodes(NODES, 's1', undefined)).toEqual(['g2', 'w2', 'g1', 'w1']);
  expect(sourceNodes(NODES, 's1', 'W')).toEqual(['w2', 'w1']);
});
