import { addressFromBytes, addressToBytes, formatAddress, parseAddress } from '@unbounded/ip';

import { NetlinkDecodeError } from './message.codec.ts';

/** AF_* of linux/socket.h. */
export const AF = { unspecified: 0, inet: 2, bridge: 7, inet6: 10 } as const;

const [DOT, ZERO, NINE] = [46, 48, 57];

/** The usual spelling of IPv4, quickly: routes come by the ten thousand. undefined leaves it to the general parser. */
const plainV4 = (text: string): Uint8Array | undefined => {
  const bytes = new Uint8Array(4);
  let [octet, digits, count] = [0, 0, 0];
  for (let at = 0; at <= text.length; at++) {
    const code = at === text.length ? DOT : text.charCodeAt(at);
    if (code === DOT) {
      if (digits === 0 || octet > 255 || count === 4) return undefined;
      bytes[count++] = octet;
      [octet, digits] = [0, 0];
    } else {
      if (code < ZERO || code > NINE || digits === 3 || (digits > 0 && octet === 0)) return undefined;
      octet = octet * 10 + code - ZERO;
      digits++;
    }
  }
  return count === 4 ? bytes : undefined;
};

/** 4 or 16 bytes in network order. @throws AddressSyntaxError */
export const addressBytes = (text: string): Uint8Array => plainV4(text) ?? addressToBytes(parseAddress(text));

const formatV4 = (bytes: Uint8Array): string => `${bytes[0]}.${bytes[1]}.${bytes[2]}.${bytes[3]}`;

/** Canonical text of 4 or 16 bytes. @throws NetlinkDecodeError for any other length */
export const addressText = (bytes: Uint8Array): string => {
  if (bytes.length === 4) return formatV4(bytes);
  if (bytes.length === 16) return formatAddress(addressFromBytes(bytes));
  throw new NetlinkDecodeError(`${bytes.length} bytes are no address: IPv4 has 4, IPv6 has 16`);
};

/** `192.0.2.1/24` as bytes and length; host bits are allowed (addresses on links have them). */
export interface PrefixBytes {
  readonly bytes: Uint8Array;
  readonly length: number;
}

export const prefixBytes = (text: string): PrefixBytes => {
  const slash = text.indexOf('/');
  if (slash < 0) throw new RangeError(`"${text}" has no prefix length: write it like 192.0.2.0/24`);
  const bytes = addressBytes(text.slice(0, slash));
  const lengthText = text.slice(slash + 1);
  const length = Number(lengthText);
  if (!/^\d{1,3}$/.test(lengthText) || length > bytes.length * 8) {
    throw new RangeError(`prefix length of "${text}" must be within 0..${bytes.length * 8}`);
  }
  return { bytes, length };
};

export const familyOf = (bytes: Uint8Array): number => (bytes.length === 4 ? AF.inet : AF.inet6);

/** 4 or 6 for AF_INET and AF_INET6. @throws NetlinkDecodeError */
export const ipFamily = (af: number): 4 | 6 => {
  if (af === AF.inet) return 4;
  if (af === AF.inet6) return 6;
  throw new NetlinkDecodeError(`address family ${af} is neither IPv4 (2) nor IPv6 (10)`);
};

export const afOf = (family: 4 | 6 | 'bridge' | undefined): number =>
  family === 4 ? AF.inet : family === 6 ? AF.inet6 : family === 'bridge' ? AF.bridge : AF.unspecified;
