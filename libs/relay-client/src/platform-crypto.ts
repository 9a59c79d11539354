import { createHash, createHmac, createPrivateKey, createPublicKey, diffieHellman, hkdfSync } from 'node:crypto';
import { promisify } from 'node:util';

import { KEY_BYTES, type ProofCrypto } from '@unbounded/relay-protocol';

/** X25519 with the node's private key, wherever that is kept: the shared secret with a public key, 32 bytes each. */
export type Exchange = (publicKey: Uint8Array) => Uint8Array | Promise<Uint8Array>;

/** What stands before the 32 bytes of an X25519 key in DER (RFC 8410). */
const PKCS8 = Buffer.from('302e020100300506032b656e04220420', 'hex');
const SPKI = Buffer.from('302a300506032b656e032100', 'hex');

const derive = promisify(diffieHellman);

/** For a private key that this process may have. @throws Error when it has not 32 bytes */
export const exchangeWith = (privateKey: Uint8Array): Exchange => {
  if (privateKey.length !== KEY_BYTES)
    throw new Error(`private key has ${privateKey.length} bytes: a WireGuard key has ${KEY_BYTES}`);
  const own = createPrivateKey({ key: Buffer.concat([PKCS8, privateKey]), format: 'der', type: 'pkcs8' });
  return (publicKey) =>
    derive({
      privateKey: own,
      publicKey: createPublicKey({ key: Buffer.concat([SPKI, publicKey]), format: 'der', type: 'spki' }),
    });
};

export const platformCrypto: ProofCrypto<Exchange> = {
  x25519: (exchange, publicKey) => exchange(publicKey),
  sha256: (bytes) => createHash('sha256').update(bytes).digest(),
  hmacSha256: (key, bytes) => createHmac('sha256', key).update(bytes).digest(),
  hkdfSha256: ({ ikm, salt, info, length }) => new Uint8Array(hkdfSync('sha256', ikm, salt, info, length)),
};
