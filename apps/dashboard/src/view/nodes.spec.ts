import { expect, test } from 'vitest';
import { filterNodes, type NodeFilter, nodeRows, urgencyOf } from './nodes.ts';
import type { NodeView } from './types.ts';

const node = (over: Partial<NodeView> = {}): NodeView => ({
  ...{ site: 's1', pools: [], state: 'Healthy', source: 'report', ready: 'True', agentVersion: '1.2.0', problems: 0 },
  ...over,
});

const nodes = {
  'a.s1': node(),
  'b.s1': node({ state: 'Degraded', problems: 2, peers: { total: 9, healthy: 8, relayed: 1 } }),
  'c.s2': node({ site: 's2', pools: ['edge'], peers: { total: 9, healthy: 9, relayed: 0 } }),
  d: { pools: [], state: 'Unknown', source: 'none', ready: 'Unknown', problems: 0 } as NodeView,
};

test.each<[NodeFilter, string[]]>([
  [{}, ['a.s1', 'b.s1', 'c.s2', 'd']],
  [{ site: 's1' }, ['a.s1', 'b.s1']],
  [{ site: '(none)' }, ['d']],
  [{ pool: 'edge' }, ['c.s2']],
  [{ state: 'Degraded' }, ['b.s1']],
  [{ source: 'none' }, ['d']],
  [{ version: '1.2.0' }, ['a.s1', 'b.s1', 'c.s2']],
  [{ only: 'problems' }, ['b.s1']],
  [{ only: 'relayed' }, ['b.s1']],
  [{ q: 'EDGE s2' }, ['c.s2']],
  [{ q: 's1', state: 'Healthy' }, ['a.s1']],
])('%j finds %j', (filter, names) => {
  expect(filterNodes(nodeRows(nodes), filter).map(({ name }) => name)).toEqual(names);
});

test('a node that has not changed keeps its row, whatever became of the others', () => {
  const [before] = nodeRows(nodes);
  const [after, changed] = nodeRows({ ...nodes, 'b.s1': node() });
  expect(after).toBe(before);
  expect(changed).toMatchObject({ name: 'b.s1', state: 'Healthy' });
});

test('what does not work comes first', () => {
  const states = ['Healthy', 'Unknown', 'Unreachable', 'Degraded'];
  expect(states.sort((a, b) => urgencyOf(a) - urgencyOf(b))).toEqual(['Unreachable', 'Degraded', 'Unknown', 'Healthy']);
});
