import { createHash, createHmac, diffieHellman, hkdfSync } from 'node:crypto';
import { promisify } from 'node:util';

import type { ProofCrypto } from '@unbounded/relay-protocol';
import { privateKeyObject, publicKeyObject } from '@unbounded/wireguard/x25519';

/** X25519 with the node's private key, wherever that is kept: the shared secret with a public key, 32 bytes each. */
export type Exchange = (publicKey: Uint8Array) => Uint8Array | Promise<Uint8Array>;

const derive = promisify(diffieHellman);

/** For a private key that this process may have. @throws RangeError when it has not 32 bytes */
export const exchangeWith = (privateKey: Uint8Array): Exchange => {
  const own = privateKeyObject(privateKey);
  return (publicKey) => derive({ privateKey: own, publicKey: publicKeyObject(publicKey) });
};

export const platformCrypto: ProofCrypto<Exchange> = {
  x25519: (exchange, publicKey) => exchange(publicKey),
  sha256: (bytes) => createHash('sha256').update(bytes).digest(),
  hmacSha256: (key, bytes) => createHmac('sha256', key).update(bytes).digest(),
  hkdfSha256: ({ ikm, salt, info, length }) => new Uint8Array(hkdfSync('sha256', ikm, salt, info, length)),
};
