import { createPrivateKey, createPublicKey, randomBytes } from 'node:crypto';

import type { WireGuardKey } from './device.ts';
import { keyBytes, keyText } from './key.codec.ts';

/** PKCS#8 of an X25519 private key (RFC 8410) is this, then the 32 bytes. */
const PKCS8_PREFIX = Uint8Array.from([
  0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x6e, 0x04, 0x22, 0x04, 0x20,
]);
/** The public key is the end of its SPKI form. */
const SPKI_PREFIX_BYTES = 12;

/** A new private key, clamped as RFC 7748 section 5 says (and as `wg genkey` does). */
export const generatePrivateKey = (): WireGuardKey => {
  const bytes = new Uint8Array(randomBytes(32));
  bytes[0] = (bytes[0] ?? 0) & 248;
  bytes[31] = ((bytes[31] ?? 0) & 127) | 64;
  return keyText(bytes);
};

/** @throws WireGuardError `invalid` when it is no key */
export const publicKeyOf = (privateKey: WireGuardKey): WireGuardKey => {
  const der = Buffer.concat([PKCS8_PREFIX, keyBytes(privateKey)]);
  const publicKey = createPublicKey(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }));
  return keyText(publicKey.export({ format: 'der', type: 'spki' }).subarray(SPKI_PREFIX_BYTES));
};
