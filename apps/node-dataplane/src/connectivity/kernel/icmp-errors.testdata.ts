import { addressToBytes, parseAddress } from '@unbounded/ip';

/** ICMP errors, byte by byte, as whoever likes may send them: RFC 792, 4443. */

export type Version = 4 | 6;

const bytesOf = (address: string): Uint8Array => addressToBytes(parseAddress(address));
const join = (...parts: readonly Uint8Array[]): Uint8Array => Uint8Array.from(parts.flatMap((part) => [...part]));
const be16 = (...numbers: readonly number[]): Uint8Array =>
  Uint8Array.from(numbers.flatMap((number) => [number >> 8, number & 0xff]));

/** RFC 1071. */
const checksum = (bytes: Uint8Array): number => {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 2) sum += (bytes[at]! << 8) | (bytes[at + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return ~sum & 0xffff;
};

/** What a sent packet carried: its protocol, and the first bytes behind its headers. */
export interface Carried {
  readonly protocol: number;
  readonly bytes: Uint8Array;
}

const UDP = 17;
const VXLAN_HEADER = Uint8Array.of(8, 0, 0, 0, 0, 0, 1, 0); // VNI 1

export const udp = (from: number, to: number): Carried => ({
  protocol: UDP,
  bytes: join(be16(from, to, 16, 0), VXLAN_HEADER),
});
export const plain = (protocol: number): Carried => ({ protocol, bytes: new Uint8Array(16) });
/** The kernel compares nothing of it with what was sent. */
export const echoReply = (version: Version): Carried =>
  version === 4 ? plain(1) : { protocol: 58, bytes: join(Uint8Array.of(129, 0), new Uint8Array(14)) };

/** How the quoted packet is made. */
export interface Shape {
  readonly name: string;
  readonly versionNumber?: number;
  /** IPv4: bytes of options. */
  readonly optionBytes?: number;
  /** IPv6: extension headers in front of what it carries: numbers and lengths. */
  readonly extensions?: readonly (readonly [header: number, bytes: number])[];
  /** In units of 8 bytes. */
  readonly fragmentOffset?: number;
}

const FRAGMENT = 44;
const PADDING = 1;

const quotedIp4 = (from: string, to: string, { protocol, bytes }: Carried, shape: Shape): Uint8Array => {
  const { versionNumber = 4, optionBytes = 0, fragmentOffset } = shape;
  const first = (versionNumber << 4) | ((20 + optionBytes) / 4);
  return join(
    Uint8Array.of(first, 0),
    be16(1428, 1, fragmentOffset ?? 0x4000), // DF, unless it is a fragment
    Uint8Array.of(64, protocol, 0, 0),
    bytesOf(from),
    bytesOf(to),
    new Uint8Array(optionBytes).fill(PADDING),
    bytes,
  );
};

const extension = (header: number, bytes: number, next: number, offset: number): Uint8Array => {
  if (header === FRAGMENT) return join(Uint8Array.of(next, 0), be16((offset << 3) | 1, 0, 1));
  // The Authentication header's length is in words, less two (RFC 4302).
  const length = header === 51 ? bytes / 4 - 2 : bytes / 8 - 1;
  return join(Uint8Array.of(next, length, 1, bytes - 4), new Uint8Array(bytes - 4)); // PadN
};

const quotedIp6 = (from: string, to: string, { protocol, bytes }: Carried, shape: Shape): Uint8Array => {
  const { versionNumber = 6, extensions = [], fragmentOffset = 0 } = shape;
  const chain = [...extensions.map(([header]) => header), protocol];
  return join(
    be16(versionNumber << 12, 0, 1400),
    Uint8Array.of(chain[0]!, 64),
    bytesOf(from),
    bytesOf(to),
    ...extensions.map(([header, size], index) => extension(header, size, chain[index + 1]!, fragmentOffset)),
    bytes,
  );
};

export interface Quoted {
  readonly version: Version;
  readonly from: string;
  readonly to: string;
  readonly carried: Carried;
  readonly shape: Shape;
}

/** Fragmentation needed (type 3, code 4), packet too big (type 2). The checksum of ICMPv6 is the sending kernel's to write. */
export const tooBig = ({ version, from, to, carried, shape }: Quoted, mtuBytes: number): Uint8Array => {
  if (version === 6) return join(be16(0x0200, 0, 0, mtuBytes), quotedIp6(from, to, carried, shape));
  const error = (sum: number): Uint8Array => join(be16(0x0304, sum, 0, mtuBytes), quotedIp4(from, to, carried, shape));
  return error(checksum(error(0)));
};
