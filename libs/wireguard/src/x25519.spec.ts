import { diffieHellman, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { expect, test } from 'vitest';
import { privateKeyObject, publicKeyBytes, publicKeyObject } from './x25519.ts';

/** The raw bytes as another form of the same key has them (JWK, RFC 8037). */
const fromJwk = (key: KeyObject, field: 'd' | 'x'): Buffer =>
  Buffer.from(String(key.export({ format: 'jwk' })[field]), 'base64url');

const pair = () => {
  const { privateKey } = generateKeyPairSync('x25519');
  return { privateKey: fromJwk(privateKey, 'd'), publicKey: fromJwk(privateKey, 'x') };
};

test('raw bytes become the keys that they are, and the other way round', () => {
  const { privateKey, publicKey } = pair();
  expect(fromJwk(privateKeyObject(privateKey), 'd')).toEqual(privateKey);
  expect(publicKeyBytes(privateKeyObject(privateKey))).toEqual(publicKey);
  expect(publicKeyBytes(publicKeyObject(publicKey))).toEqual(publicKey);
});

test('both ends find the same secret', () => {
  const [a, b] = [pair(), pair()];
  const secretOf = (own: Buffer, peer: Buffer): Buffer =>
    diffieHellman({ privateKey: privateKeyObject(own), publicKey: publicKeyObject(peer) });
  expect(secretOf(a.privateKey, b.publicKey)).toEqual(secretOf(b.privateKey, a.publicKey));
});

test.each([privateKeyObject, publicKeyObject])('%o refuses bytes that are no key', (of) => {
  expect(() => of(new Uint8Array(31))).toThrow('the key has 31 bytes: an X25519 key has 32');
});
