import { globSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { affectedRoots, type ProjectGraph, STARTED_BY_PATH } from './affected.ts';

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

test('specs that start a program by its path are concerned by it, and what only uses their package is not', () => {
  const nodes = ['apps/relay', 'libs/relay-client', 'apps/other'].map((root) => [root, { data: { root } }] as const);
  const dependencies = { 'apps/other': [{ target: 'libs/relay-client' }] };
  const roots = affectedRoots({ nodes: Object.fromEntries(nodes), dependencies }, ['apps/relay/src/relay.ts']);
  expect(roots).toEqual(['apps/relay', 'libs/relay-client']);
});

test('every package with a harness is one that concerns the fuzz tests', () => {
  const root = join(import.meta.dirname, '../../..');
  const exclude = ['**/node_modules/**', '**/dist/**', '**/build/**'];
  const harnesses = globSync(['{apps,libs}/**/*.fuzz.{ts,c}', 'bpf/*.fuzz.c'], { cwd: root, exclude });
  const holders = new Set(
    harnesses.map((file) => (file.startsWith('bpf/') ? 'bpf' : file.split('/').slice(0, 2).join('/'))),
  );
  expect([...holders].sort()).toEqual([...STARTED_BY_PATH['tools/fuzz']!].sort());
});
