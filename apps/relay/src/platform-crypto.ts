import {
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
} from 'node:crypto';
import { promisify } from 'node:util';

import { KEY_BYTES, type ProofCrypto } from '@unbounded/relay-protocol';

/** What stands before the 32 bytes of an X25519 key in DER (RFC 8410). */
const PKCS8 = Buffer.from('302e020100300506032b656e04220420', 'hex');
const SPKI = Buffer.from('302a300506032b656e032100', 'hex');

const exchange = promisify(diffieHellman);

/** Node's cryptography; the exchange runs in libuv's threads, so that forwarding does not wait for it. */
export const platformCrypto: ProofCrypto<KeyObject> = {
  x25519: (privateKey, publicKey) =>
    exchange({
      privateKey,
      publicKey: createPublicKey({ key: Buffer.concat([SPKI, publicKey]), format: 'der', type: 'spki' }),
    }),
  sha256: (bytes) => createHash('sha256').update(bytes).digest(),
  hmacSha256: (key, bytes) => createHmac('sha256', key).update(bytes).digest(),
  hkdfSha256: ({ ikm, salt, info, length }) => new Uint8Array(hkdfSync('sha256', ikm, salt, info, length)),
};

export interface KeyPair {
  readonly privateKey: KeyObject;
  /** 32 bytes. */
  readonly publicKey: Buffer;
}

const publicBytes = (key: KeyObject): Buffer => key.export({ format: 'der', type: 'spki' }).subarray(-KEY_BYTES);

export const generateKeyPair = (): KeyPair => {
  const { privateKey, publicKey } = generateKeyPairSync('x25519');
  return { privateKey, publicKey: publicBytes(publicKey) };
};

/** From base64 as `wg genkey` prints it. @throws Error that says what would be right */
export const readKeyPair = (text: string, file: string): KeyPair => {
  const bytes = Buffer.from(text.trim(), 'base64');
  if (bytes.length !== KEY_BYTES)
    throw new Error(`${file} holds ${bytes.length} bytes: a key as "wg genkey" prints it has ${KEY_BYTES}, in base64`);
  const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8, bytes]), format: 'der', type: 'pkcs8' });
  return { privateKey, publicKey: publicBytes(createPublicKey(privateKey)) };
};
