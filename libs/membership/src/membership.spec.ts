import { type GatewayPool, type Site } from '@unbounded/crds';
import fc from 'fast-check';
import { expect, test } from 'vitest';

import { indexSites, keyRotationOf, nodeFacts, nodeFingerprint, type NodeObject, poolOf } from './index.ts';

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

const key = { 'net.unbounded-cloud.io/wg-pubkey': 'k' };
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

test('podCIDRs win over podCIDR, and what is no block is kept as text only', () => {
  const object = { ...node([]), spec: { podCIDR: '10.0.0.0/24', podCIDRs: ['10.0.0.0/24', 'x', '2001:db8::/64'] } };
  expect(nodeFacts(object).podCIDRs).toHaveLength(3);
  expect(nodeFacts(object).podPrefixes).toHaveLength(2);
  expect(nodeFacts({ ...node([]), spec: { podCIDR: '10.0.0.0/24' } }).podCIDRs).toEqual(['10.0.0.0/24']);
});

test('whatever a Node says of itself, it is read without an error and to the same facts', () => {
  const text = fc.oneof(
    fc.string({ maxLength: 60 }),
    fc.ipV4(),
    fc.ipV6(),
    fc.constantFrom('10.0.0.0/24', 'fd00::/64', '10.0.0.1/8', ''),
  );
  const object = fc.record({
    metadata: fc.record({
      name: fc.string(),
      annotations: fc.dictionary(fc.constantFrom(...Object.keys(key), 'net.unbounded-cloud.io/tunnel-protocols'), text),
    }),
    spec: fc.record({ podCIDR: text, podCIDRs: fc.array(text, { maxLength: 3 }) }),
    status: fc.record({
      addresses: fc.array(fc.record({ type: fc.constantFrom('InternalIP', 'ExternalIP', 'Hostname'), address: text }), {
        maxLength: 4,
      }),
    }),
  });
  fc.assert(
    fc.property(object, (random) => {
      const facts = nodeFacts(random);
      expect(facts.internalAddresses).toHaveLength(facts.internalIPs.length);
      expect(nodeFingerprint(structuredClone(random))).toBe(nodeFingerprint(random));
    }),
  );
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
    { 'wg-key-generation': '3', 'wg-next-pubkey': 'n' },
    { wireGuardKeyGeneration: 3, wireGuardNextPublicKey: 'n' },
  ],
  ['a generation that is no number counts as absent', { 'wg-key-generation': '-1', 'wg-next-pubkey': '' }, {}],
])('%s', (_, notes, want) => {
  const annotations = Object.fromEntries(
    Object.entries(notes).map(([name, value]) => [`net.unbounded-cloud.io/${name}`, value]),
  );
  expect(keyRotationOf(nodeFacts(node([], { annotations })))).toEqual(want);
});
