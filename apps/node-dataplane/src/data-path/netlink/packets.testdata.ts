import { addressToBytes, macBytes, parseAddress } from '@unbounded/ip';

/** Tunnel packets, byte by byte, as a peer sends them whose kernel does not keep it from forging. */

type Bytes = Uint8Array<ArrayBuffer>;

const UDP = 17;
const PORT = 7000;
const bytesOf = (address: string): Uint8Array => addressToBytes(parseAddress(address));
const join = (...parts: readonly Uint8Array[]): Bytes => Uint8Array.from(parts.flatMap((part) => [...part]));
const be16 = (...numbers: readonly number[]): Bytes => Uint8Array.from(numbers.flatMap((n) => [n >> 8, n & 0xff]));

/** RFC 1071. */
const checksum = (bytes: Uint8Array): number => {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 2) sum += (bytes[at]! << 8) | (bytes[at + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return ~sum & 0xffff;
};

/** A UDP datagram to port 7000 in an IPv4 or IPv6 packet. */
export const datagram = (source: string, destination: string, payload: Uint8Array): Bytes => {
  const [from, to] = [bytesOf(source), bytesOf(destination)];
  const length = 8 + payload.length;
  const pseudo = join(from, to, be16(UDP, length));
  const sum = checksum(join(pseudo, be16(PORT, PORT, length, 0), payload));
  const udp = join(be16(PORT, PORT, length, sum), payload);
  if (from.length === 16) return join(be16(0x6000, 0, length), Uint8Array.of(UDP, 64), from, to, udp);
  const header = (check: number): Bytes =>
    join(be16(0x4500, 20 + length, 0, 0), Uint8Array.of(64, UDP), be16(check), from, to);
  return join(header(checksum(header(0))), udp);
};

const etherTypeOf = (packet: Uint8Array): number => ((packet[0] ?? 0) >> 4 === 4 ? 0x0800 : 0x86dd);

const frame = (packet: Uint8Array, { mac, etherType = etherTypeOf(packet) }: Inner): Bytes => {
  return join(macBytes(mac), macBytes('02:00:00:00:00:01'), be16(etherType), packet);
};

export interface Inner {
  /** Of the receiving device. */
  readonly mac: string;
  /** Absent: the packet's. */
  readonly etherType?: number;
}

/** RFC 7348: flags with I set, VNI 1. */
export const vxlan = (packet: Uint8Array, inner: Inner): Bytes =>
  join(be16(0x0800, 0, 0, 0x0100), frame(packet, inner));

/** RFC 8926: version 0, Ethernet inside. */
export const geneve = (packet: Uint8Array, inner: Inner, options: Uint8Array = new Uint8Array(), vni = 1): Bytes =>
  join(Uint8Array.of(options.length / 4, 0), be16(0x6558, 0, vni << 8), options, frame(packet, inner));
