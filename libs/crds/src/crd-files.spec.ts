import { readdirSync, readFileSync } from 'node:fs';

import { expect, test } from 'vitest';

import { crdFiles } from './crd-files.ts';
import { toCustomResourceDefinition } from './kind.ts';
import type { JsonSchema } from './schema.ts';
import { kinds } from './kinds.ts';

test('deploy/crds is what the schemas say (else run tools/generate)', () => {
  const files = crdFiles();
  const directory = new URL('../../../deploy/crds/', import.meta.url);
  expect(readdirSync(directory).sort()).toEqual([...files.keys()].sort());
  for (const [name, text] of files) expect(readFileSync(new URL(name, directory), 'utf8')).toBe(text);
});

const walk = (path: string, node: JsonSchema): string[] => [
  ...(node.type === 'string' && node.maxLength === undefined && node.enum === undefined ? [`${path}: maxLength`] : []),
  ...(node.type === 'array' && node.maxItems === undefined ? [`${path}: maxItems`] : []),
  ...(node.additionalProperties && node.maxProperties === undefined ? [`${path}: maxProperties`] : []),
  ...(node.items ? walk(`${path}[]`, node.items) : []),
  ...(node.additionalProperties ? walk(`${path}{}`, node.additionalProperties) : []),
  ...Object.entries(node.properties ?? {}).flatMap(([name, child]) => walk(`${path}.${name}`, child)),
];

test('every text, list and map of every kind is bounded', () => {
  expect(kinds.flatMap(({ kind, body }) => walk(kind, body.json))).toEqual([]);
});

const unexplained = (path: string, node: JsonSchema): string[] => [
  ...Object.entries(node.properties ?? {}).flatMap(([name, child]) => [
    ...(child.description ? [] : [`${path}.${name}`]),
    ...unexplained(`${path}.${name}`, child),
  ]),
  ...(node.items ? unexplained(`${path}[]`, node.items) : []),
  ...(node.additionalProperties ? unexplained(`${path}{}`, node.additionalProperties) : []),
];

test('kubectl explain has words for every field of every kind', () => {
  expect(kinds.flatMap(({ kind, body }) => unexplained(kind, body.json))).toEqual([]);
});

test('short names are what the documents say', () => {
  expect(Object.fromEntries(kinds.map(({ kind, shortNames }) => [kind, shortNames.join()]))).toEqual({
    Site: 'st',
    SiteNodeSlice: 'sns',
    GatewayPool: 'gp',
    GatewayPoolNode: 'gpn',
    SitePeering: 'spr',
    SiteGatewayPoolAssignment: 'sgpa',
    GatewayPoolPeering: 'gpp',
    Mesh: 'msh',
    EgressIPPool: 'eipp',
    StaticEgressIP: 'seip',
    ClusterStaticEgressIP: 'cseip',
    EgressNodeSlice: 'ens',
    Network: 'lan',
    NetworkEndpoint: 'nep',
    FDBEntry: 'fdb',
    Neighbor: 'nbr',
    TailnetDevice: 'tsd',
  });
});

test('a namespaced kind is installed as one, others belong to the cluster', () => {
  const scopes = kinds.map((definition) => {
    const { spec } = toCustomResourceDefinition(definition);
    return { kind: definition.kind, scope: (spec as { scope: string }).scope };
  });
  expect(scopes.filter(({ scope }) => scope !== 'Cluster')).toEqual([
    { kind: 'StaticEgressIP', scope: 'Namespaced' },
    { kind: 'NetworkEndpoint', scope: 'Namespaced' },
    { kind: 'TailnetDevice', scope: 'Namespaced' },
  ]);
});
