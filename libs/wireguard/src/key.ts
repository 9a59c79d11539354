import { randomBytes } from 'node:crypto';

import type { WireGuardKey } from './device.ts';
import { keyBytes, keyText } from './key.codec.ts';
import { privateKeyObject, publicKeyBytes } from './x25519.ts';

/** A new private key, clamped as RFC 7748 section 5 says (and as `wg genkey` does). */
export const generatePrivateKey = (): WireGuardKey => {
  const bytes = new Uint8Array(randomBytes(32));
  bytes[0] = (bytes[0] ?? 0) & 248;
  bytes[31] = ((bytes[31] ?? 0) & 127) | 64;
  return keyText(bytes);
};

/** @throws WireGuardError `invalid` when it is no key */
export const publicKeyOf = (privateKey: WireGuardKey): WireGuardKey =>
  keyText(publicKeyBytes(privateKeyObject(keyBytes(privateKey))));
