import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { topologyKinds } from '@unbounded/crds';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readObjectFiles } from './object-files.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'objects-'));
});
afterEach(() => rmSync(folder, { recursive: true }));
const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);

test('objects of all files count, in YAML documents and JSON, by their kind', () => {
  write('a.yaml', 'kind: Site\nmetadata: {name: s1}\n---\nkind: GatewayPool\nmetadata: {name: p1}\n---\n');
  write('b.json', '{"kind":"Site","metadata":{"name":"s2"}}');
  write('c.yml', 'kind: Deployment\nmetadata: {name: x}\n');
  write('notes.txt', 'kind: Site');
  const { objects } = readObjectFiles(folder, topologyKinds, 'n1');
  expect(objects.sites.map(({ metadata }) => metadata.name)).toEqual(['s1', 's2']);
  expect(objects.gatewayPools).toHaveLength(1);
  expect(objects.slices).toEqual([]);
});

test('the own Node gives addresses and blocks; those of others do not', () => {
  const node = (name: string, ip: string): string =>
    JSON.stringify({
      kind: 'Node',
      metadata: { name, annotations: { 'net.unbounded-cloud.io/rotate-wireguard-key': `for ${name}` } },
      spec: { podCIDRs: ['100.65.1.0/24'] },
      status: {
        addresses: [
          { type: 'InternalIP', address: ip },
          { type: 'ExternalIP', address: '203.0.113.9' },
          { type: 'Hostname', address: name },
        ],
      },
    });
  write('nodes.yaml', `${node('n2', '10.0.0.2')}\n---\n${node('n1', '10.0.0.1')}`);
  expect(readObjectFiles(folder, topologyKinds, 'n1').node).toEqual({
    internalIps: ['10.0.0.1'],
    externalIps: ['203.0.113.9'],
    podCidrs: ['100.65.1.0/24'],
    rotateKey: 'for n1',
  });
  expect(readObjectFiles(folder, topologyKinds, 'n3').node).toEqual({ internalIps: [], externalIps: [], podCidrs: [] });
});

test('a file that is no YAML is an error with its name', () => {
  write('bad.yaml', 'kind: [Site\n');
  expect(() => readObjectFiles(folder, topologyKinds, 'n1')).toThrow(join(folder, 'bad.yaml'));
});
