import assert from 'node:assert/strict';
import { WIREGUARD_KEY_PATTERN } from '@unbounded/crds';
import { parsePrefix } from '@unbounded/ip';
import type { FuzzTarget } from '@unbounded/testing';
import { findMember, planNode } from '../node.plan.ts';
import { parseWorld } from './parse-world.ts';
import { cluster } from '../testdata.ts';
import type { TopologyObjects } from './world.ts';

/**
 * What nodes declare of themselves and what an operator mistypes: any text in any field that holds one. Input: a byte for
 * the cluster's protocol, a byte for who is planned for, then a byte for a field and a text, up to a NUL, again and again.
 */
const PROTOCOLS = ['VXLAN', 'WireGuard', 'None', 'Auto'] as const;
const MOST_FIELDS = 8;
const KEY = new RegExp(WIREGUARD_KEY_PATTERN);

type Texts = Record<string, unknown>;

/** Every place of the objects that holds a text, but for what the API server itself guarantees. */
const placesOf = (value: unknown): (readonly [holder: Texts, field: string])[] => {
  if (typeof value !== 'object' || value === null) return [];
  const holder = value as Texts;
  return Object.entries(holder).flatMap(([field, inner]) => {
    if (/^(apiVersion|kind|metadata)$/.test(field)) return [];
    return typeof inner === 'string' ? [[holder, field] as const] : placesOf(inner);
  });
};

const mistyped = (objects: TopologyObjects, input: Uint8Array): TopologyObjects => {
  const copy = structuredClone(objects);
  const places = placesOf(copy);
  let at = 2;
  for (let count = 0; count < MOST_FIELDS && at < input.length; count++) {
    const nul = input.indexOf(0, at + 1);
    const end = nul < 0 ? input.length : nul;
    const [holder, field] = places[input[at]! % places.length]!;
    holder[field] = new TextDecoder().decode(input.subarray(at + 1, end));
    at = end + 1;
  }
  return copy;
};

const run = (input: Uint8Array): void => {
  const [protocol = 0, who = 0] = input;
  const objects = cluster({ sites: 2, gateways: 1, workers: 2, protocol: PROTOCOLS[protocol % PROTOCOLS.length]! });
  const world = parseWorld(mistyped(objects, input));
  const member = findMember(world, ['s1-w1', 's1-g1', 's2-g1'][who % 3]!);
  if (!member) return; // its own name was changed
  const plan = planNode(world, { member, underlayMtuBytes: 1500 });
  assert.ok(plan.problems.every(({ message }) => message !== ''));
  // What is handed to the kernel: a value that it refuses would stop a whole interface.
  for (const { publicKey, allowedIps, endpoint } of plan.wireGuard.flatMap(({ peers }) => peers)) {
    assert.match(publicKey, KEY);
    for (const prefix of allowedIps) parsePrefix(prefix);
    if (endpoint !== undefined) assert.match(endpoint, /^(\d+(\.\d+){3}|\[[0-9a-f:.]+\]):\d+$/);
  }
  for (const prefix of [...plan.blocks.map((block) => block.prefix), ...plan.contained, ...plan.direct])
    parsePrefix(prefix);
};

const text = (value: string): Uint8Array => new TextEncoder().encode(value);

export const target: FuzzTarget = {
  run,
  seeds: [[], ['x'], ['0.0.0.0/0'], ['10.1.0.31'], ['fe80::1%eth0'], ['::/0'], ['999.1.1.1/33']].flatMap((values) =>
    [0, 1, 2, 3].map((protocol) =>
      Uint8Array.from([protocol, protocol, ...values.flatMap((value) => [protocol * 9, ...text(value), 0])]),
    ),
  ),
  tokens: [
    '0.0.0.0/0',
    '10.1.0.31',
    '127.0.0.1',
    '224.0.0.1',
    '::1',
    '/',
    ':',
    '100.65.31.0/24',
    'WireGuard',
    'Auto',
    'constructor',
    '__proto__',
    's2',
  ].map(text),
  maxBytes: 256,
};
