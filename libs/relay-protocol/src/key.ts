import { KEY_BYTES } from './frame.ts';

/**
 * Curve25519's points of low order, little-endian (https://cr.yp.to/ecdh.html#validate): with these as public key the
 * shared secret is zero whatever the private key is, so who registers one has nothing to prove. None is anybody's key.
 */
const LOW_ORDER = [
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000000',
  'e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800',
  '5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
].map((hex) => Uint8Array.from(hex.match(/../g)!, (byte) => Number.parseInt(byte, 16)));

const sameBut = (key: Uint8Array, point: Uint8Array): boolean => {
  for (let index = 0; index < KEY_BYTES - 1; index++) if (key[index] !== point[index]) return false;
  // X25519 ignores the top bit (RFC 7748, section 5).
  return (key[KEY_BYTES - 1]! & 0x7f) === point[KEY_BYTES - 1];
};

/** Whether the key is a point of low order, which must not be registered. */
export const isLowOrderKey = (key: Uint8Array): boolean => LOW_ORDER.some((point) => sameBut(key, point));
