import { annotations, gatewayPoolKind, type schema, siteNodeSliceKind } from '@unbounded/crds';
import { parseAddress, parsePrefix, specialRangeIn, specialRangeOf } from '@unbounded/ip';
import fc from 'fast-check';
import { expect, test } from 'vitest';

import { violations } from './conforms.testdata.ts';
import { keyRotationOf, type NodeFacts, nodeFacts, nodeFingerprint, type NodeObject } from './index.ts';

const keyOf = (seed: number): string => Buffer.alloc(32, seed).toString('base64');
const node = (parts: {
  notes?: Record<string, string>;
  internal?: readonly string[];
  external?: readonly string[];
  podCIDRs?: readonly string[];
}): NodeObject => ({
  metadata: { name: 'n', ...(parts.notes ? { annotations: parts.notes } : {}) },
  spec: { podCIDRs: parts.podCIDRs ?? [] },
  status: {
    addresses: [
      ...(parts.internal ?? []).map((address) => ({ type: 'InternalIP', address })),
      ...(parts.external ?? []).map((address) => ({ type: 'ExternalIP', address })),
    ],
  },
});
const reasonsOf = (object: NodeObject): string[] => nodeFacts(object).problems.map(({ reason }) => reason);

const sliceEntry = siteNodeSliceKind.body.json.properties!['nodes']!.items!;
const poolEntry = (gatewayPoolKind.body.json.properties!['status'] as schema.JsonSchema).properties!['nodes']!.items!;

/** The fields that both lists have, as the controllers write them. */
const entryOf = (facts: NodeFacts) => ({
  name: 'n',
  wireGuardPublicKey: facts.wireGuardPublicKey ?? keyOf(1),
  ...keyRotationOf(facts),
  internalIPs: facts.internalIPs,
  podCIDRs: facts.podCIDRs,
  ...(facts.tunnelProtocols ? { tunnelProtocols: facts.tunnelProtocols } : {}),
  ...(facts.l2Locator === undefined ? {} : { l2Locator: facts.l2Locator }),
});
/** And what the pool's alone has. */
const poolEntryOf = (facts: NodeFacts) => ({
  ...entryOf(facts),
  ...(facts.features ? { features: facts.features } : {}),
});

const longText = fc.oneof(
  fc.string({ maxLength: 100, unit: 'binary' }),
  fc.ipV4(),
  fc.ipV6(),
  fc.uint8Array({ minLength: 30, maxLength: 34 }).map((bytes) => Buffer.from(bytes).toString('base64')),
  fc
    .array(fc.constantFrom('WireGuard', 'VXLAN', 'GENEVE', 'x'.repeat(40), ' '), { maxLength: 40 })
    .map((all) => all.join()),
  fc.constantFrom('10.0.0.0/24', 'fd00::/64', '10.0.0.1/8', '0.0.0.0/0', '', '-1', '99999999999', 'x'.repeat(5000)),
);
const addresses = fc.array(
  fc.record({
    type: fc.constantFrom('InternalIP', 'ExternalIP', 'Hostname'),
    address: fc.oneof(
      longText,
      fc.nat(0xff_ff).map((last) => `10.1.${last >> 8}.${last & 255}`),
    ),
  }),
  { maxLength: 80 },
);
const hostile = fc.record({
  metadata: fc.record({
    name: fc.string(),
    annotations: fc.dictionary(fc.constantFrom(...Object.values(annotations)), longText),
  }),
  spec: fc.record({ podCIDR: longText, podCIDRs: fc.array(longText, { maxLength: 60 }) }),
  status: fc.record({ addresses }),
});

test('whatever a Node says of itself, what slices and pools list of it fits their schemas', () => {
  fc.assert(
    fc.property(hostile, (random) => {
      const facts = nodeFacts(random);
      expect(violations(sliceEntry, entryOf(facts))).toEqual([]);
      expect(violations(poolEntry, { ...poolEntryOf(facts), externalIPs: facts.externalIPs })).toEqual([]);
      expect(facts.internalAddresses).toHaveLength(facts.internalIPs.length);
      expect(facts.podPrefixes).toHaveLength(facts.podCIDRs.length);
      for (const text of [...facts.internalIPs, ...facts.externalIPs])
        expect(specialRangeOf(parseAddress(text))).toBeUndefined();
      for (const text of facts.podCIDRs) expect(specialRangeIn(parsePrefix(text))).toBeUndefined();
      for (const { message } of facts.problems) expect(message).toMatch(/^[^\n\r\0]{20,800}$/);
      expect(nodeFingerprint(structuredClone(random))).toBe(nodeFingerprint(random));
    }),
    { numRuns: 500 },
  );
});

test('the schemas refuse what the facts leave out', () => {
  const listed = { name: 'n', wireGuardPublicKey: 'x' };
  expect(violations(sliceEntry, listed)).not.toEqual([]);
  expect(violations(poolEntry, listed)).not.toEqual([]);
  expect(violations(sliceEntry, { name: 'n', internalIPs: Array(33).fill('10.0.0.1') })).not.toEqual([]);
});

test.each<[string, string]>([
  ['a word', 'not-a-key'],
  ['65 characters', 'A'.repeat(65)],
  ['31 bytes', Buffer.alloc(31, 7).toString('base64')],
  ['33 bytes', Buffer.alloc(33, 7).toString('base64')],
  ['32 bytes that are all zero', Buffer.alloc(32).toString('base64')],
  ['bits behind the last byte', `${keyOf(7).slice(0, 42)}d=`],
  ['a line feed at the end', `${keyOf(7)}\n`],
  ['base64url', Buffer.alloc(32, 255).toString('base64').replaceAll('/', '_')],
])('%s is no WireGuard key, current or next, and the Node is told', (_, text) => {
  const facts = nodeFacts(
    node({ notes: { [annotations.wireGuardPublicKey]: text, [annotations.wireGuardNextPublicKey]: text } }),
  );
  expect(facts.wireGuardPublicKey).toBeUndefined();
  expect(facts.wireGuardNextPublicKey).toBeUndefined();
  expect(facts.problems.map(({ reason, field }) => [reason, field])).toEqual([
    ['InvalidWireGuardKey', 'metadata.annotations[net.unbounded-cloud.io/wg-pubkey]'],
    ['InvalidWireGuardKey', 'metadata.annotations[net.unbounded-cloud.io/wg-next-pubkey]'],
  ]);
});

test('a key of 32 bytes is taken as it is; a next key that is the current one is none', () => {
  const notes = { [annotations.wireGuardPublicKey]: keyOf(7), [annotations.wireGuardNextPublicKey]: keyOf(7) };
  expect(nodeFacts(node({ notes }))).toMatchObject({ wireGuardPublicKey: keyOf(7), problems: [] });
  expect(nodeFacts(node({ notes })).wireGuardNextPublicKey).toBeUndefined();
});

test.each<[string, NodeObject, Partial<NodeFacts>, string[]]>([
  [
    'addresses that are not unicast are left out, the others stay',
    node({ internal: ['10.1.0.1', '127.0.0.1', '0.0.0.0', 'fe80::1', '224.0.0.1', 'x', 'FD00:0::1'] }),
    { internalIPs: ['10.1.0.1', 'fd00::1'] },
    Array(5).fill('UnusableAddress'),
  ],
  ['an address twice is one', node({ internal: ['fd00::1', 'FD00:0::1'] }), { internalIPs: ['fd00::1'] }, []],
  [
    'pod CIDRs that are no routable block are left out',
    node({ podCIDRs: ['100.64.0.0/24', '0.0.0.0/0', '127.0.0.0/24', '10.0.0.1/8', 'x', 'FD00:0::/64'] }),
    { podCIDRs: ['100.64.0.0/24', 'fd00::/64'], hasPodCIDRs: true },
    Array(4).fill('InvalidPodCIDR'),
  ],
  [
    'an unknown protocol is left out, the known ones stay',
    node({ notes: { [annotations.tunnelProtocols]: `VXLAN,${'x'.repeat(40)},GENEVE,VXLAN` } }),
    { tunnelProtocols: ['GENEVE', 'VXLAN'] },
    ['UnknownTunnelProtocol'],
  ],
  [
    'a feature that we do not know is a newer agent’s; the known ones count, each once',
    node({ notes: { [annotations.features]: `node-addresses,later,${'x'.repeat(40)},node-addresses` } }),
    { features: ['node-addresses'] },
    [],
  ],
  [
    'features at any length are none',
    node({ notes: { [annotations.features]: `node-addresses,${'x'.repeat(5000)}` } }),
    {},
    [],
  ],
  [
    'a generation that is no number counts as absent',
    node({ notes: { [annotations.wireGuardKeyGeneration]: '99999999999' } }),
    {},
    ['InvalidKeyGeneration'],
  ],
  [
    'a request for a new key at any length is none',
    node({ notes: { [annotations.rotateWireGuardKey]: 'x'.repeat(257) } }),
    {},
    ['InvalidRotationRequest'],
  ],
  [
    'a request for a new key is taken as it is',
    node({ notes: { [annotations.rotateWireGuardKey]: 'x'.repeat(256) } }),
    { rotateKey: 'x'.repeat(256) },
    [],
  ],
  [
    'a port that no gateway has counts as absent',
    node({ notes: { [annotations.wireGuardPort]: '51820' } }),
    {},
    ['InvalidWireGuardPort'],
  ],
  [
    'the annotation takes precedence over ExternalIP',
    node({ external: ['192.0.2.1'], notes: { [annotations.externalAddress]: '203.0.113.7, GW.example.com.' } }),
    { externalIPs: ['203.0.113.7'], externalNames: ['gw.example.com'], isExternalAnnotated: true },
    [],
  ],
  [
    'what is invalid in the annotation is left out',
    node({ notes: { [annotations.externalAddress]: '127.0.0.1,gw.example.com,a b,999.1.1.1,10.0.0.0/8' } }),
    { externalIPs: [], externalNames: ['gw.example.com'] },
    Array(4).fill('InvalidExternalAddress'),
  ],
  [
    'an annotation with nothing valid does not count',
    node({ external: ['192.0.2.1'], notes: { [annotations.externalAddress]: 'x'.repeat(2000) } }),
    { externalIPs: ['192.0.2.1'], externalNames: [], isExternalAnnotated: false },
    ['InvalidExternalAddress'],
  ],
])('%s', (_, object, want, reasons) => {
  expect(nodeFacts(object)).toMatchObject(want);
  expect(reasonsOf(object)).toEqual(reasons);
});

test.each([
  ['nothing', ''],
  ['an address', 'fd53:ab:cd:1::'],
  ['a longer block', 'fd53:ab:cd:1::/65'],
  ['a shorter one', 'fd53:ab:cd::/48'],
  ['an IPv4 block', '10.0.0.0/8'],
  ['host bits', 'fd53:ab:cd:1::1/64'],
  ['upper case', 'FD53:ab:cd:1::/64'],
  ['zeros that the canonical form omits', 'fd53:00ab:cd:1::/64'],
  ['link-local addresses', 'fe80::/64'],
  ['multicast', 'ff02::/64'],
  ['the unspecified address', '::/64'],
  ['any length', `fd53:ab:cd:1::/64${'x'.repeat(5000)}`],
])('%s is no locator, and the Node is told', (_, text) => {
  const facts = nodeFacts(node({ notes: { [annotations.l2Locator]: text } }));
  expect(facts).not.toHaveProperty('l2Locator');
  expect(facts.problems).toMatchObject([
    { reason: 'InvalidL2Locator', field: 'metadata.annotations[net.unbounded-cloud.io/l2-locator]' },
  ]);
  expect(facts.problems[0]!.message).toContain('it must be an IPv6 block of /64');
});

test('a locator is a fact, and changes the fingerprint; a Node without one has no such field', () => {
  const one = node({ notes: { [annotations.l2Locator]: 'fd53:ab:cd:1::/64' } });
  expect(nodeFacts(one)).toMatchObject({ l2Locator: 'fd53:ab:cd:1::/64', problems: [] });
  expect(nodeFacts(node({}))).not.toHaveProperty('l2Locator');
  expect(nodeFingerprint(one)).not.toBe(nodeFingerprint(node({})));
});

test('40 internal addresses are 32 and a problem; messages name value and remedy, and hold no control characters', () => {
  const internal = Array.from({ length: 40 }, (_, index) => `10.1.0.${index + 1}`);
  expect(nodeFacts(node({ internal })).internalIPs).toEqual(internal.slice(0, 32));
  expect(reasonsOf(node({ internal }))).toEqual(['TooManyAddresses']);
  const [problem] = nodeFacts(
    node({ notes: { [annotations.wireGuardPublicKey]: `\u001b[2J${'y'.repeat(500)}` } }),
  ).problems;
  expect(problem!.message).toContain('(504 characters) is not a WireGuard public key: a key is 32 bytes');
  expect(problem!.message).toContain('restart its agent');
  expect(problem!.message).not.toContain('\u001b');
});
