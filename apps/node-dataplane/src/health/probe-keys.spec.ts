import { expect, test } from 'vitest';
import { generatePrivateKey, publicKeyOf } from '@unbounded/wireguard';
import { createProbeKeys } from './probe-keys.ts';

const pair = () => {
  const privateKey = generatePrivateKey();
  return { privateKey, publicKey: publicKeyOf(privateKey) };
};
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const packet = Uint8Array.from([1, 2, 3]);

test('both ends derive the same key for each direction, and no two directions or peers share one', () => {
  const [a, b, c] = [pair(), pair(), pair()];
  const atA = createProbeKeys(a.privateKey)(b.publicKey);
  const atB = createProbeKeys(b.privateKey)(a.publicKey);
  expect(hex(atA.own(packet))).toBe(hex(atB.peer(packet)));
  expect(hex(atA.peer(packet))).toBe(hex(atB.own(packet)));
  const others = createProbeKeys(a.privateKey)(c.publicKey);
  expect(new Set([atA.own, atA.peer, others.own, others.peer].map((code) => hex(code(packet)))).size).toBe(4);
});

test('codes of keys that are known do not change from version to version', () => {
  // A scalar and the public key of Bob in RFC 7748 section 6.1.
  const text = (digits: string): string => Buffer.from(digits, 'hex').toString('base64');
  const alice = text('77076d0a7318a57d3c16c17251b26645df4c2f92ebc09929f9d4b2f6ba66c2a0');
  const bob = text('de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f');
  expect(hex(createProbeKeys(alice)(bob).own(packet))).toBe('ee21aab9fbba72b28a5d5bd4ff4e005f');
});

test.each([
  ['a key that is too short', Buffer.alloc(31).toString('base64')],
  ['a point that gives everybody the same secret', Buffer.alloc(32).toString('base64')],
  ['no key', ''],
])('a peer has no keys with %s', (_name, publicKey) => {
  expect(() => createProbeKeys(generatePrivateKey())(publicKey)).toThrow(Error);
});
