import { expect, test } from 'vitest';
import { affectedRoots, type ProjectGraph } from './affected.ts';

const roots = { workspace: '.', ip: 'libs/ip', topology: 'libs/topology', agent: 'apps/agent', relay: 'apps/relay' };
const graph: ProjectGraph = {
  nodes: Object.fromEntries(
    Object.entries({ ...roots, repo: 'tools/repo' }).map(([name, root]) => [name, { data: { root } }]),
  ),
  dependencies: {
    topology: [{ target: 'ip' }],
    agent: [{ target: 'topology' }, { target: 'npm:zod' }],
    repo: [{ target: 'agent' }, { target: 'relay' }],
    workspace: [{ target: 'agent' }],
  },
};

test('what depends on a changed project is affected, also by way of others', () => {
  expect(affectedRoots(graph, ['libs/ip/src/cidr.ts'])).toEqual([
    'apps/agent',
    'libs/ip',
    'libs/topology',
    'tools/repo',
  ]);
  expect(affectedRoots(graph, ['apps/relay/src/main.ts'])).toEqual(['apps/relay', 'tools/repo']);
});

test('a file of no project, a configuration for instance, affects all; a document at the top only the tests about the tree', () => {
  const all = ['apps/agent', 'apps/relay', 'libs/ip', 'libs/topology', 'tools/repo'];
  expect(affectedRoots(graph, ['tsconfig.json'])).toEqual(all);
  expect(affectedRoots(graph, ['tools/setup'])).toEqual(all);
  expect(affectedRoots(graph, ['README.md'])).toEqual(['tools/repo']);
});

test('a folder whose name begins like another is not that other', () => {
  expect(affectedRoots(graph, ['libs/ip-next/src/a.ts'])).toEqual(affectedRoots(graph, ['tsconfig.json']));
});

test('no change affects nothing', () => {
  expect(affectedRoots(graph, [])).toEqual([]);
});
