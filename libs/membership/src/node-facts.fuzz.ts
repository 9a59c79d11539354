import assert from 'node:assert/strict';
import { annotations, gatewayPoolKind, type schema, siteNodeSliceKind } from '@unbounded/crds';
import { parseAddress, parsePrefix, specialRangeIn, specialRangeOf } from '@unbounded/ip';
import type { FuzzTarget } from '@unbounded/testing';
import { violations } from './conforms.testdata.ts';
import { keyRotationOf, nodeFacts, type NodeObject } from './node-facts.ts';

/** What a Node says of itself. Input: a byte for a field and a text, up to a NUL, again and again. */

const NOTES = Object.values(annotations);
const FIELDS = [...NOTES, 'InternalIP', 'ExternalIP', 'podCIDR'];

const readNode = (input: Uint8Array): NodeObject => {
  const notes: Record<string, string> = {};
  const addresses: { type: string; address: string }[] = [];
  const podCIDRs: string[] = [];
  for (let at = 0; at < input.length;) {
    const nul = input.indexOf(0, at + 1);
    const end = nul < 0 ? input.length : nul;
    const field = FIELDS[input[at]! % FIELDS.length]!;
    const text = new TextDecoder().decode(input.subarray(at + 1, end));
    if (field === 'podCIDR') podCIDRs.push(text);
    else if (field.endsWith('IP')) addresses.push({ type: field, address: text });
    else notes[field] = text;
    at = end + 1;
  }
  return { metadata: { name: 'n', annotations: notes }, spec: { podCIDRs }, status: { addresses } };
};

const listedIn = (json: schema.JsonSchema | undefined): schema.JsonSchema => json!.properties!['nodes']!.items!;
const sliceEntry = listedIn(siteNodeSliceKind.body.json);
const poolEntry = listedIn(gatewayPoolKind.body.json.properties!['status']);

/** Whatever it says, what slices and pools list of it fits their schemas, and addresses and blocks are usable ones. */
const run = (input: Uint8Array): void => {
  const facts = nodeFacts(readNode(input));
  const entry = {
    name: 'n',
    wireGuardPublicKey: facts.wireGuardPublicKey ?? KEY,
    ...keyRotationOf(facts),
    internalIPs: facts.internalIPs,
    podCIDRs: facts.podCIDRs,
    ...(facts.tunnelProtocols && { tunnelProtocols: facts.tunnelProtocols }),
    ...(facts.l2Locator !== undefined && { l2Locator: facts.l2Locator }),
  };
  assert.deepEqual(violations(sliceEntry, entry), []);
  assert.deepEqual(violations(poolEntry, { ...entry, externalIPs: facts.externalIPs }), []);
  for (const text of [...facts.internalIPs, ...facts.externalIPs])
    assert.equal(specialRangeOf(parseAddress(text)), undefined, text);
  for (const text of facts.podCIDRs) assert.equal(specialRangeIn(parsePrefix(text)), undefined, text);
  if (facts.l2Locator !== undefined)
    assert.equal(specialRangeIn(parsePrefix(facts.l2Locator)), undefined, facts.l2Locator);
  for (const { message } of facts.problems) assert.match(message, /^[^\n\r\0]{20,800}$/);
};

const KEY = `${'B'.repeat(42)}A=`;
const encoder = new TextEncoder();
const texts = (...entries: readonly (readonly [field: string, text: string])[]): Uint8Array =>
  Uint8Array.from(entries.flatMap(([field, text]) => [FIELDS.indexOf(field), ...encoder.encode(text), 0]));

export const target: FuzzTarget = {
  run,
  seeds: [
    texts([annotations.wireGuardPublicKey, KEY], [annotations.wireGuardNextPublicKey, KEY]),
    texts([annotations.wireGuardKeyGeneration, '3'], [annotations.wireGuardPort, '51820']),
    texts([annotations.tunnelProtocols, 'VXLAN,WireGuard,None'], [annotations.rotateWireGuardKey, 'now']),
    texts([annotations.features, 'node-addresses,later']),
    texts([annotations.l2Locator, 'fd53:ab:cd:1::/64']),
    texts([annotations.externalAddress, '203.0.113.7, gw.example.com.']),
    texts(['InternalIP', '10.1.0.31'], ['InternalIP', 'fd00::1'], ['ExternalIP', '2001:db8::1']),
    texts(['podCIDR', '100.64.3.0/24'], ['podCIDR', 'fd64:1::/64']),
  ],
  tokens: [
    KEY,
    '127.0.0.1',
    '::ffff:10.0.0.1',
    'fe80::1%eth0',
    '224.0.0.1',
    '0.0.0.0/0',
    '/24',
    ',',
    '\n',
    '\u2028',
  ].map((text) => encoder.encode(text)),
  maxBytes: 256,
};
