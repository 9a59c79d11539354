import { addressToBytes, macBytes, parseAddress } from '@unbounded/ip';

/** Packets and frames, byte by byte, as a sender makes them whose kernel does not keep it from forging. */

export type Bytes = Uint8Array<ArrayBuffer>;

const UDP = 17;
export const IPIP = 4;
export const IPV6_IN_IP = 41;
export const GRE = 47;
const ICMPV6 = 58;

const bytesOf = (address: string): Bytes => Uint8Array.from(addressToBytes(parseAddress(address)));
const joinBytes = (...parts: readonly Uint8Array[]): Bytes => Uint8Array.from(parts.flatMap((part) => [...part]));
/** 16-bit numbers in network byte order. */
const be16 = (...numbers: readonly number[]): Bytes =>
  Uint8Array.from(numbers.flatMap((number) => [(number >> 8) & 0xff, number & 0xff]));
export const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const isIpv6 = (address: string): boolean => address.includes(':');

/** RFC 1071. */
const checksum = (bytes: Uint8Array): number => {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 2) sum += (bytes[at]! << 8) | (bytes[at + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return ~sum & 0xffff;
};

export interface Ends {
  readonly source: string;
  readonly destination: string;
}

/** An IPv4 (RFC 791) or IPv6 (RFC 8200) packet without options. */
export const ipPacket = ({ source, destination }: Ends, protocol: number, payload: Uint8Array): Bytes => {
  const [from, to] = [bytesOf(source), bytesOf(destination)];
  if (isIpv6(source))
    return joinBytes(be16(0x6000, 0, payload.length), Uint8Array.of(protocol, 255), from, to, payload);
  const header = (check: number): Bytes =>
    joinBytes(be16(0x4500, 20 + payload.length, 0, 0), Uint8Array.of(64, protocol), be16(check), from, to);
  return joinBytes(header(checksum(header(0))), payload);
};

/** Sum of what TCP, UDP and ICMPv6 cover besides themselves, and of the message whose own checksum is still 0. */
const transportChecksum = ({ source, destination }: Ends, protocol: number, message: Uint8Array): number =>
  checksum(joinBytes(bytesOf(source), bytesOf(destination), be16(protocol, message.length), message));

/** A UDP datagram (RFC 768) in its packet. */
export const datagram = (
  ends: Ends,
  ports: readonly [source: number, destination: number],
  payload: Uint8Array,
): Bytes => {
  const length = 8 + payload.length;
  const sum = transportChecksum(ends, UDP, joinBytes(be16(...ports, length, 0), payload)) || 0xffff;
  return ipPacket(ends, UDP, joinBytes(be16(...ports, length, sum), payload));
};

const etherTypeOf = (packet: Uint8Array): number => ((packet[0] ?? 0) >> 4 === 4 ? 0x0800 : 0x86dd);

export interface EthernetHeader {
  readonly to: string;
  readonly from: string;
  /** Absent: IPv4 or IPv6, as the payload is. */
  readonly type?: number;
}

export const ethernet = ({ to, from, type }: EthernetHeader, payload: Uint8Array): Bytes =>
  joinBytes(macBytes(to), macBytes(from), be16(type ?? etherTypeOf(payload)), payload);

/** RFC 7348: flags with I set, VNI 1. */
export const vxlan = (frame: Uint8Array): Bytes => joinBytes(be16(0x0800, 0, 0, 0x0100), frame);

/** RFC 8926: version 0, no options, Ethernet inside, VNI 1. */
export const geneve = (frame: Uint8Array): Bytes => joinBytes(Uint8Array.of(0, 0), be16(0x6558, 0, 0x0100), frame);

export const BROADCAST_MAC = 'ff:ff:ff:ff:ff:ff';

export interface ArpSender {
  readonly mac: string;
  readonly ip: string;
}

/** An ARP message to everybody. */
const arp = (operation: 1 | 2, sender: ArpSender, target: ArpSender, from: string): Bytes =>
  ethernet(
    { to: BROADCAST_MAC, from, type: 0x0806 },
    joinBytes(
      be16(1, 0x0800, 0x0604, operation),
      ...[sender, target].flatMap(({ mac, ip }) => [macBytes(mac), bytesOf(ip)]),
    ),
  );

/** An ARP reply (RFC 826) to everybody that says who has an address; the frame may be another one's than the message. */
export const gratuitousArp = ({ mac, ip }: ArpSender, from = mac): Bytes =>
  arp(2, { mac, ip }, { mac: BROADCAST_MAC, ip }, from);

/** An ICMP error (RFC 792, RFC 1191): the quoted packet is too big for a link of this MTU. */
export const icmpTooBig = (ends: Ends, mtuBytes: number, quoted: Uint8Array): Bytes => {
  const message = (sum: number): Bytes =>
    joinBytes(Uint8Array.of(3, 4), be16(sum, 0, mtuBytes), quoted.subarray(0, 28));
  return ipPacket(ends, 1, message(checksum(message(0))));
};

/** An ICMPv6 message (RFC 4443) in its packet; the hop limit is 255, as neighbor discovery demands. */
const icmpv6 = (ends: Ends, type: number, body: Uint8Array): Bytes => {
  const message = (sum: number): Bytes => joinBytes(Uint8Array.of(type, 0), be16(sum), body);
  return ipPacket(ends, ICMPV6, message(transportChecksum(ends, ICMPV6, message(0))));
};

const ALL_NODES = 'ff02::1';
const ALL_NODES_MAC = '33:33:00:00:00:01';

/** A router advertisement (RFC 4861) that offers a default route of high preference for half an hour. */
export const routerAdvertisement = (mac: string, source: string): Bytes =>
  ethernet(
    { to: ALL_NODES_MAC, from: mac },
    icmpv6(
      { source, destination: ALL_NODES },
      134,
      joinBytes(Uint8Array.of(64, 0x08), be16(1800, 0, 0, 0, 0), Uint8Array.of(1, 1), macBytes(mac)),
    ),
  );

const NOBODY_MAC = '00:00:00:00:00:00';

/** An ARP request (RFC 826) to everybody for who has an address. */
export const arpRequest = (sender: ArpSender, target: string, from = sender.mac): Bytes =>
  arp(1, sender, { mac: NOBODY_MAC, ip: target }, from);

/** A neighbor solicitation (RFC 4861) to all nodes, for who has an address. */
export const neighborSolicitation = ({ mac, ip }: ArpSender, target: string, from = mac): Bytes =>
  ethernet(
    { to: ALL_NODES_MAC, from },
    icmpv6(
      { source: ip, destination: ALL_NODES },
      135,
      joinBytes(be16(0, 0), bytesOf(target), Uint8Array.of(1, 1), macBytes(mac)),
    ),
  );

/** A redirect (RFC 4861): what is for the target goes by the sender's MAC from now on. */
export const redirectMessage = ({ mac, ip }: ArpSender, target: string): Bytes =>
  ethernet(
    { to: ALL_NODES_MAC, from: mac },
    icmpv6({ source: ip, destination: ALL_NODES }, 137, joinBytes(be16(0, 0), bytesOf(ip), bytesOf(target))),
  );

/** A neighbor advertisement (RFC 4861) with the override flag: the address is at this MAC. */
export const neighborAdvertisement = ({ mac, ip }: ArpSender, from = mac): Bytes =>
  ethernet(
    { to: ALL_NODES_MAC, from },
    icmpv6(
      { source: ip, destination: ALL_NODES },
      136,
      joinBytes(Uint8Array.of(0x20, 0, 0, 0), bytesOf(ip), Uint8Array.of(2, 1), macBytes(mac)),
    ),
  );
