import { createHash, createHmac, createPrivateKey, createPublicKey, diffieHellman, hkdfSync } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';

import proofs from '../testdata/proofs.json' with { type: 'json' };
import { FrameError, isLowOrderKey, type ProofCrypto, proofTags, sameTag } from './index.ts';

const bytesOf = (hex: string): Buffer => Buffer.from(hex, 'hex');
const PKCS8 = bytesOf('302e020100300506032b656e04220420');
const SPKI = bytesOf('302a300506032b656e032100');

const platform: ProofCrypto<Uint8Array> = {
  x25519: (privateKey, publicKey) =>
    diffieHellman({
      privateKey: createPrivateKey({ key: Buffer.concat([PKCS8, privateKey]), format: 'der', type: 'pkcs8' }),
      publicKey: createPublicKey({ key: Buffer.concat([SPKI, publicKey]), format: 'der', type: 'spki' }),
    }),
  sha256: (bytes) => createHash('sha256').update(bytes).digest(),
  hmacSha256: (key, bytes) => createHmac('sha256', key).update(bytes).digest(),
  hkdfSha256: ({ ikm, salt, info, length }) => new Uint8Array(hkdfSync('sha256', ikm, salt, info, length)),
};

test.each(proofs)('$name: client and relay come to the same tags', async (vector) => {
  const transcript = {
    register: bytesOf(vector.register),
    hello: bytesOf(vector.hello),
    challenge: bytesOf(vector.challenge),
  };
  const keys = [
    [vector.ephemeralPrivate, vector.ephemeralPublic],
    ...(vector.staticPrivate && vector.staticPublic ? [[vector.staticPrivate, vector.staticPublic]] : []),
  ].map(([privateKey, publicKey]) => [bytesOf(privateKey!), bytesOf(publicKey!)] as const);
  const client = keys.map(([, publicKey]) => ({ privateKey: bytesOf(vector.clientPrivate), publicKey }));
  const relay = keys.map(([privateKey]) => ({ privateKey, publicKey: bytesOf(vector.clientPublic) }));
  const expected = { client: bytesOf(vector.clientTag), relay: bytesOf(vector.relayTag) };
  expect(await proofTags(platform, client, transcript)).toEqual(expected);
  expect(await proofTags(platform, relay, transcript)).toEqual(expected);
  const otherHello = { ...transcript, hello: Buffer.from(transcript.hello).fill(9, 10) };
  expect((await proofTags(platform, relay, otherHello)).client).not.toEqual(expected.client);
});

test('an exchange that gives zero is refused', async () => {
  const zero = { ...platform, x25519: () => new Uint8Array(32) };
  const transcript = { register: new Uint8Array(1), hello: new Uint8Array(1), challenge: new Uint8Array(1) };
  const exchange = [{ privateKey: new Uint8Array(32), publicKey: new Uint8Array(32) }];
  await expect(proofTags(zero, exchange, transcript)).rejects.toThrow(FrameError);
});

const LOW_ORDER = [
  '00'.repeat(32),
  `01${'00'.repeat(31)}`,
  'e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800',
  '5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157',
  `ec${'ff'.repeat(30)}7f`,
  `ed${'ff'.repeat(30)}7f`,
  `ee${'ff'.repeat(30)}7f`,
  `ed${'ff'.repeat(31)}`,
];

test.each(LOW_ORDER)('%s is a point of low order, as the platform says too', (hex) => {
  expect(isLowOrderKey(bytesOf(hex))).toBe(true);
  expect(() => platform.x25519(new Uint8Array(32).fill(5), bytesOf(hex))).toThrow(/failed during derivation/);
});

test('other keys are not', () => {
  expect(isLowOrderKey(bytesOf(proofs[0]!.clientPublic))).toBe(false);
});

test('tags are the same when all bytes are', () => {
  const tag = fc.uint8Array({ minLength: 0, maxLength: 4 });
  fc.assert(fc.property(tag, tag, (a, b) => sameTag(a, b) === (Buffer.compare(a, b) === 0)));
});
