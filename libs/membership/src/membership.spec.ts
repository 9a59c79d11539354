import type { GatewayPool, Site } from '@unbounded/crds';
import fc from 'fast-check';
import { expect, test } from 'vitest';

import {
  indexSites,
  isSelected,
  isSelectorProtected,
  keyRotationOf,
  nodeFacts,
  nodeFingerprint,
  type NodeObject,
  poolOf,
} from './index.ts';

const site = (name: string, nodeCidrs: string[], creationTimestamp = '2026-01-01T00:00:00Z'): Site => ({
  apiVersion: 'net.unbounded-cloud.io/v1alpha1',
  kind: 'Site',
  metadata: { name, creationTimestamp },
  spec: { nodeCidrs, podCidrAssignments: [{ cidrBlocks: ['100.64.0.0/16'] }] },
});
const pool = (name: string, type: 'External' | 'Internal' | '' = '', nodeSelector = { gw: 'yes' }): GatewayPool => ({
  apiVersion: 'net.unbounded-cloud.io/v1alpha1',
  kind: 'GatewayPool',
  metadata: { name },
  spec: { type, nodeSelector },
});
const node = (
  addresses: [type: string, address: string][],
  extra: Partial<NodeObject['metadata']> = {},
): NodeObject => ({
  metadata: { name: 'n', ...extra },
  status: { addresses: addresses.map(([type, address]) => ({ type, address })) },
});

test('the older site gets an address that two sites claim, and the younger is named', () => {
  const index = indexSites([site('a', ['10.0.0.0/8'], '2026-02-01T00:00:00Z'), site('b', ['10.1.0.0/16'])]);
  expect(index.siteOf(nodeFacts(node([['InternalIP', '10.1.2.3']])))?.metadata.name).toBe('b');
  expect(index.siteOf(nodeFacts(node([['InternalIP', '10.2.2.3']])))?.metadata.name).toBe('a');
  expect(index.overlaps()).toEqual([{ site: 'a', earlier: 'b', cidr: '10.0.0.0/8', earlierCidr: '10.1.0.0/16' }]);
});

test('a node matches by any internal address of either family, never by an external one', () => {
  const index = indexSites([site('six', ['2001:db8::/32'])]);
  expect(
    index.siteOf(
      nodeFacts(
        node([
          ['InternalIP', '10.0.0.1'],
          ['InternalIP', '2001:db8::1'],
        ]),
      ),
    )?.metadata.name,
  ).toBe('six');
  expect(index.siteOf(nodeFacts(node([['ExternalIP', '2001:db8::1']])))).toBeUndefined();
  expect(index.siteOf(nodeFacts(node([['InternalIP', 'nonsense']])))).toBeUndefined();
});

test('the order of the sites does not matter', () => {
  const sites = [site('a', ['10.0.0.0/8']), site('b', ['10.1.0.0/16']), site('c', ['10.1.1.0/24', '2001:db8::/32'])];
  const facts = nodeFacts(node([['InternalIP', '10.1.1.1']]));
  fc.assert(
    fc.property(fc.shuffledSubarray(sites, { minLength: 3, maxLength: 3 }), (shuffled) => {
      expect(indexSites(shuffled).siteOf(facts)?.metadata.name).toBe('a');
      expect(indexSites(shuffled).overlaps()).toHaveLength(3);
    }),
  );
});

const keyOf = (seed: number): string => Buffer.alloc(32, seed).toString('base64');
const key = { 'net.unbounded-cloud.io/wg-pubkey': keyOf(1) };
test.each([
  ['without a key no pool', [pool('a')], node([['ExternalIP', '192.0.2.1']], { labels: { gw: 'yes' } }), undefined],
  [
    'External needs an external address',
    [pool('a', 'External')],
    node([['InternalIP', '10.0.0.1']], { labels: { gw: 'yes' }, annotations: key }),
    undefined,
  ],
  ['empty type means External', [pool('a', '')], node([], { labels: { gw: 'yes' }, annotations: key }), undefined],
  ['Internal does not', [pool('a', 'Internal')], node([], { labels: { gw: 'yes' }, annotations: key }), 'a'],
  [
    'the first eligible pool by name',
    [pool('c', 'Internal'), pool('b', 'Internal'), pool('a')],
    node([], { labels: { gw: 'yes' }, annotations: key }),
    'b',
  ],
  [
    'all labels of the selector',
    [pool('a', 'Internal', { gw: 'yes', x: '1' } as never)],
    node([], { labels: { gw: 'yes' }, annotations: key }),
    undefined,
  ],
])('%s', (_, pools, object, want) => expect(poolOf(nodeFacts(object), pools)?.metadata.name).toBe(want));

test('podCIDRs win over podCIDR', () => {
  const object = { ...node([]), spec: { podCIDR: '10.0.0.0/24', podCIDRs: ['10.0.0.0/24', '2001:db8::/64'] } };
  expect(nodeFacts(object).podCIDRs).toEqual(['10.0.0.0/24', '2001:db8::/64']);
  expect(nodeFacts({ ...node([]), spec: { podCIDR: '10.0.0.0/24' } }).podCIDRs).toEqual(['10.0.0.0/24']);
});

test.each<[string, Record<string, string>, readonly string[] | undefined, boolean]>([
  ['a label of the cluster’s own', { 'gateway-of': 'a' }, undefined, false],
  [
    'a label that a kubelet has anyway',
    { 'kubernetes.io/hostname': 'a', 'node.kubernetes.io/x': 'y' },
    undefined,
    false,
  ],
  ['a look-alike domain', { 'node-restriction.kubernetes.io.example.com/gw': 'a' }, undefined, false],
  ['a label of node-restriction', { 'node-restriction.kubernetes.io/gateway-of': 'a', any: 'x' }, undefined, true],
  ['another label of Kubernetes', { 'node-role.kubernetes.io/gateway': '' }, undefined, true],
  ['node names', { 'gateway-of': 'a' }, ['n1'], true],
])('%s: is the selector protected from kubelets', (_, nodeSelector, nodeNames, want) => {
  const { spec, ...rest } = pool('p');
  expect(isSelectorProtected({ ...rest, spec: { ...spec, nodeSelector, ...(nodeNames ? { nodeNames } : {}) } })).toBe(
    want,
  );
});

test('a pool that names nodes selects no others, whatever their labels', () => {
  const named = { ...pool('p'), spec: { ...pool('p').spec, nodeNames: ['n1'] } };
  expect(isSelected(named, { name: 'n1', labels: { gw: 'yes' } })).toBe(true);
  expect(isSelected(named, { name: 'n2', labels: { gw: 'yes' } })).toBe(false);
  expect(isSelected(named, { name: 'n1', labels: {} })).toBe(false);
});

test('a heartbeat does not change the fingerprint, a new address does', () => {
  const before = node([['InternalIP', '10.0.0.1']]);
  const heartbeat = {
    ...before,
    metadata: { ...before.metadata, resourceVersion: '2' },
    status: { ...before.status, phase: 'x' },
  };
  expect(nodeFingerprint(heartbeat)).toBe(nodeFingerprint(before));
  expect(nodeFingerprint(node([['InternalIP', '10.0.0.2']]))).not.toBe(nodeFingerprint(before));
});

test.each<[string, Record<string, string>, object]>([
  ['a node that never exchanged its key says nothing of it', {}, {}],
  [
    'a key that is being exchanged comes with the one that follows',
    { 'wg-key-generation': '3', 'wg-next-pubkey': keyOf(2) },
    { wireGuardKeyGeneration: 3, wireGuardNextPublicKey: keyOf(2) },
  ],
  ['a generation that is no number counts as absent', { 'wg-key-generation': '-1', 'wg-next-pubkey': '' }, {}],
])('%s', (_, notes, want) => {
  const annotations = Object.fromEntries(
    Object.entries(notes).map(([name, value]) => [`net.unbounded-cloud.io/${name}`, value]),
  );
  expect(keyRotationOf(nodeFacts(node([], { annotations })))).toEqual(want);
});
