import { WireGuardError, type WireGuardKey } from './device.ts';

/** Curve25519 keys are 32 bytes: base64 for people and manifests, hex in the text protocol, bytes in netlink. */
const KEY_BYTES = 32;
/** 43 digits and a pad; the last digit carries 4 bits, so its lowest two are zero. */
const BASE64_KEY = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;

export const isKey = (text: string): text is WireGuardKey => BASE64_KEY.test(text);

/** @throws WireGuardError `invalid`; the text is not repeated, it may be a secret with a typing error */
export const keyBytes = (key: WireGuardKey): Uint8Array => {
  if (!isKey(key)) throw new WireGuardError('invalid', 'a WireGuard key must be 32 bytes as base64 (44 characters)');
  return Uint8Array.from(atob(key), (character) => character.charCodeAt(0));
};

/** @throws WireGuardError `malformed` for any other length */
export const keyText = (bytes: Uint8Array): WireGuardKey => {
  if (bytes.length !== KEY_BYTES)
    throw new WireGuardError('malformed', `a key of ${bytes.length} bytes: it must have ${KEY_BYTES}`);
  return btoa(String.fromCharCode(...bytes));
};

export const keyHex = (key: WireGuardKey): string =>
  Array.from(keyBytes(key), (byte) => byte.toString(16).padStart(2, '0')).join('');

/** @throws WireGuardError `malformed` */
export const keyFromHex = (hex: string): WireGuardKey => {
  if (!/^[0-9a-f]{64}$/i.test(hex)) throw new WireGuardError('malformed', 'a key of the device is not 64 hex digits');
  return keyText(
    Uint8Array.from({ length: KEY_BYTES }, (_, index) => Number.parseInt(hex.slice(index * 2, index * 2 + 2), 16)),
  );
};

/** All zero: "no key" in both protocols. */
export const isNoKey = (bytes: Uint8Array): boolean => bytes.every((byte) => byte === 0);
