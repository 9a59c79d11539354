import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';

/**
 * WireGuard's keys as Node's cryptography takes them. In DER an X25519 key is a fixed beginning and then its 32 bytes
 * (RFC 8410): PKCS #8 for private ones, SPKI for public ones. A sub-path of its own, free of native code.
 */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b656e04220420', 'hex');
const SPKI_PREFIX = Buffer.from('302a300506032b656e032100', 'hex');
const KEY_BYTES = 32;

const checked = (bytes: Uint8Array): Uint8Array => {
  if (bytes.length === KEY_BYTES) return bytes;
  throw new RangeError(`the key has ${bytes.length} bytes: an X25519 key has ${KEY_BYTES}`);
};

/** @throws RangeError when it has not 32 bytes */
export const privateKeyObject = (bytes: Uint8Array): KeyObject =>
  createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, checked(bytes)]), format: 'der', type: 'pkcs8' });

/** @throws RangeError when it has not 32 bytes */
export const publicKeyObject = (bytes: Uint8Array): KeyObject =>
  createPublicKey({ key: Buffer.concat([SPKI_PREFIX, checked(bytes)]), format: 'der', type: 'spki' });

/** The 32 bytes of a public key, or of the one that belongs to a private key. */
export const publicKeyBytes = (key: KeyObject): Buffer =>
  (key.type === 'private' ? createPublicKey(key) : key)
    .export({ format: 'der', type: 'spki' })
    .subarray(SPKI_PREFIX.length);
