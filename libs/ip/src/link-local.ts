import { type Address, addressFromBytes } from './address.ts';
import { macBytes } from './mac.ts';

const INVERTED_BIT = 0x02;

/**
 * The link-local address that a kernel gives an interface by its MAC address (RFC 4291 2.5.6 and appendix A): fe80::/64 and the modified
 * EUI-64.
 * @throws RangeError where the text is no MAC address
 */
export const linkLocalOf = (mac: string): Address => {
  const [first = 0, second = 0, third = 0, ...rest] = macBytes(mac);
  const identifier = [first ^ INVERTED_BIT, second, third, 0xff, 0xfe, ...rest];
  return addressFromBytes(Uint8Array.of(0xfe, 0x80, 0, 0, 0, 0, 0, 0, ...identifier));
};
