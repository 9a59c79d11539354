import { createHash, createHmac, diffieHellman, generateKeyPairSync, hkdfSync, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';

import { KEY_BYTES, type ProofCrypto } from '@unbounded/relay-protocol';
import { privateKeyObject, publicKeyBytes, publicKeyObject } from '@unbounded/wireguard/x25519';

const exchange = promisify(diffieHellman);

/** Node's cryptography; the exchange runs in libuv's threads, so that forwarding does not wait for it. */
export const platformCrypto: ProofCrypto<KeyObject> = {
  x25519: (privateKey, publicKey) => exchange({ privateKey, publicKey: publicKeyObject(publicKey) }),
  sha256: (bytes) => createHash('sha256').update(bytes).digest(),
  hmacSha256: (key, bytes) => createHmac('sha256', key).update(bytes).digest(),
  hkdfSha256: ({ ikm, salt, info, length }) => new Uint8Array(hkdfSync('sha256', ikm, salt, info, length)),
};

export interface KeyPair {
  readonly privateKey: KeyObject;
  /** 32 bytes. */
  readonly publicKey: Buffer;
}

export const generateKeyPair = (): KeyPair => {
  const { privateKey, publicKey } = generateKeyPairSync('x25519');
  return { privateKey, publicKey: publicKeyBytes(publicKey) };
};

/** From base64 as `wg genkey` prints it. @throws Error that says the valid input */
export const readKeyPair = (text: string, file: string): KeyPair => {
  const bytes = Buffer.from(text.trim(), 'base64');
  if (bytes.length !== KEY_BYTES)
    throw new Error(
      `${file} holds ${bytes.length} bytes: must hold a key as "wg genkey" prints it, ${KEY_BYTES} bytes in base64`,
    );
  const privateKey = privateKeyObject(bytes);
  return { privateKey, publicKey: publicKeyBytes(privateKey) };
};
