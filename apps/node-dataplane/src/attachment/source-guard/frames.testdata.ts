import { addressToBytes, macBytes, parseAddress } from '@unbounded/ip';

/** Ethernet frames, byte by byte, as a pod with raw sockets makes them. */

type Bytes = Uint8Array<ArrayBuffer>;

export const join = (...parts: readonly Uint8Array[]): Bytes => Uint8Array.from(parts.flatMap((part) => [...part]));
export const u8 = (...numbers: readonly number[]): Bytes => Uint8Array.from(numbers);
export const be16 = (...numbers: readonly number[]): Bytes =>
  Uint8Array.from(numbers.flatMap((number) => [number >> 8, number & 0xff]));
const ip = (text: string): Uint8Array => addressToBytes(parseAddress(text));
const words = (bytes: Uint8Array): number[] =>
  Array.from({ length: Math.ceil(bytes.length / 2) }, (_, at) => (bytes[2 * at]! << 8) | (bytes[2 * at + 1] ?? 0));

/** The ones' complement sum of 16-bit words (RFC 1071). */
export const sumOf = (bytes: Uint8Array): number => {
  let sum = words(bytes).reduce((total, word) => total + word, 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
};
const checksum = (bytes: Uint8Array): number => ~sumOf(bytes) & 0xffff;

const [ICMPV6, UDP] = [58, 17];
export const TYPE = { ipv4: 0x0800, arp: 0x0806, ipv6: 0x86dd, vlan: 0x8100, qinq: 0x88a8, lldp: 0x88cc } as const;

export interface Macs {
  readonly to: string;
  readonly from: string;
}

export const ethernet = ({ to, from }: Macs, type: number, payload: Uint8Array): Bytes =>
  join(macBytes(to), macBytes(from), be16(type), payload);

/** Tag control information: VLAN 0 is a priority tag. */
export const tagged = (macs: Macs, tags: readonly (readonly [type: number, vlan: number])[], frame: Bytes): Bytes =>
  join(macBytes(macs.to), macBytes(macs.from), ...tags.map(([type, vlan]) => be16(type, vlan)), frame.subarray(12));

export interface Route {
  readonly from: string;
  readonly to: string;
}

/** @param fragment as in the header: flags and offset */
export const ipv4 = ({ from, to }: Route, protocol: number, payload: Uint8Array, fragment = 0): Bytes => {
  const header = (sum: number): Bytes =>
    join(be16(0x4500, 20 + payload.length, 7, fragment), u8(64, protocol), be16(sum), ip(from), ip(to));
  return join(header(checksum(header(0))), payload);
};

export const ipv6 = ({ from, to }: Route, next: number, payload: Uint8Array, hopLimit = 255): Bytes =>
  join(be16(0x6000, 0, payload.length), u8(next, hopLimit), ip(from), ip(to), payload);

const pseudo = ({ from, to }: Route, protocol: number, length: number): Bytes =>
  join(ip(from), ip(to), be16(protocol, length));

export const udp = (route: Route, payload: Uint8Array): Bytes => {
  const header = (sum: number): Bytes => be16(7000, 7000, 8 + payload.length, sum);
  const sum = checksum(join(pseudo(route, UDP, 8 + payload.length), header(0), payload));
  return join(header(sum), payload);
};

export const icmp6 = (route: Route, type: number, body: Uint8Array): Bytes => {
  const message = (sum: number): Bytes => join(u8(type, 0), be16(sum), body);
  const plain = message(0);
  return message(checksum(join(pseudo(route, ICMPV6, plain.length), plain)));
};

export const arp = (operation: 1 | 2, sender: readonly [mac: string, address: string], target: string): Bytes =>
  join(
    be16(1, TYPE.ipv4),
    u8(6, 4),
    be16(operation),
    macBytes(sender[0]),
    ip(sender[1]),
    new Uint8Array(6),
    ip(target),
  );

/** Option 1 of the source, 2 of the target. */
export const macOption = (type: 1 | 2, mac: string): Bytes => join(u8(type, 1), macBytes(mac));
export const NONCE = u8(14, 1, 1, 2, 3, 4, 5, 6);
const FLAGS = u8(0x20, 0, 0, 0); // of an advertisement: override

export const solicitation = (route: Route, target: string, ...options: readonly Uint8Array[]): Bytes =>
  icmp6(route, 135, join(new Uint8Array(4), ip(target), ...options));
export const advertisement = (route: Route, target: string, ...options: readonly Uint8Array[]): Bytes =>
  icmp6(route, 136, join(FLAGS, ip(target), ...options));
/** Lifetime of 1800 seconds. */
export const routerAdvertisement = (route: Route, mac: string): Bytes =>
  icmp6(route, 134, join(u8(64, 0), be16(1800), new Uint8Array(8), macOption(1, mac)));
export const redirect = (route: Route, target: string, destination: string): Bytes =>
  icmp6(route, 137, join(new Uint8Array(4), ip(target), ip(destination)));

/** Of 8 bytes, with padding alone: hop-by-hop (0) and destination (60) options have this form. */
export const optionsHeader = (next: number): Bytes => u8(next, 0, 1, 4, 0, 0, 0, 0);
export const fragmentHeader = (next: number, offsetBytes: number, more: boolean): Bytes =>
  join(u8(next, 0), be16(offsetBytes | (more ? 1 : 0)), u8(0, 0, 0, 9));
