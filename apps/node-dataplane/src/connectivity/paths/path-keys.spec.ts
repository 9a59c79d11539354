import { generatePrivateKey, publicKeyOf } from '@unbounded/wireguard';
import { expect, test } from 'vitest';
import { derivePathKeys } from './path-keys.ts';

const [a, b, c] = [generatePrivateKey(), generatePrivateKey(), generatePrivateKey()];
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const text = Buffer.from('a probe');

test('what one end sends is of the peer to the other, and each direction has a key and a name of its own', () => {
  const [atA, atB] = [derivePathKeys(a, publicKeyOf(b)), derivePathKeys(b, publicKeyOf(a))];
  expect(hex(atA.own.name)).toBe(hex(atB.peer.name));
  expect(hex(atB.own.name)).toBe(hex(atA.peer.name));
  expect(hex(atA.own.authenticate(text))).toBe(hex(atB.peer.authenticate(text)));
  const all = [atA.own, atA.peer, derivePathKeys(a, publicKeyOf(c)).own, derivePathKeys(c, publicKeyOf(b)).own];
  expect(new Set(all.map(({ name }) => hex(name))).size).toBe(4);
  expect(new Set(all.map(({ authenticate }) => hex(authenticate(text)))).size).toBe(4);
  expect([atA.own.name.length, atA.own.authenticate(text).length]).toEqual([8, 16]);
});

test.each([
  ['', 'the key has 0 bytes'],
  ['AAAA', 'the key has 3 bytes'],
  [Buffer.alloc(33).toString('base64'), 'the key has 33 bytes'],
  [Buffer.alloc(32).toString('base64'), 'derivation'],
])('a public key that is none, or gives everybody the same secret, is refused: %j', (key, why) => {
  expect(() => derivePathKeys(a, key)).toThrow(why);
});
