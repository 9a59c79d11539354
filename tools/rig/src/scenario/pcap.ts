import { addressFromBytes, formatAddress } from '@unbounded/ip';

/** Reads pcap files (the classic format, libpcap's savefile manual page) of Ethernet captures. */

export interface Packet {
  readonly etherType: number;
  /** Canonical text; undefined for what is neither IPv4 nor IPv6. */
  readonly source: string | undefined;
  readonly destination: string | undefined;
  /** IP protocol number; of IPv6 the first next header. */
  readonly protocol: number | undefined;
  readonly sourcePort: number | undefined;
  readonly destinationPort: number | undefined;
  /** What follows the UDP header, or the whole frame otherwise. */
  readonly payload: Buffer;
  readonly frame: Buffer;
}

const FILE_HEADER = 24;
const PACKET_HEADER = 16;
const MAGICS = new Set([0xa1b2c3d4, 0xa1b23c4d]);
const [IPV4, IPV6] = [0x0800, 0x86dd];
const ETHERNET = 14;
const UDP = 17;
const TCP = 6;

interface IpHeader {
  readonly source: string;
  readonly destination: string;
  readonly protocol: number;
  /** Where the transport's header is, in the first fragment; otherwise undefined. */
  readonly transport: number | undefined;
}

const ipv4 = (frame: Buffer): IpHeader | undefined => {
  if (frame.length < 34) return undefined;
  const text = (at: number): string => [...frame.subarray(at, at + 4)].join('.');
  const isFirst = (frame.readUInt16BE(20) & 0x1fff) === 0;
  const transport = isFirst ? ETHERNET + (frame[ETHERNET]! & 15) * 4 : undefined;
  return { source: text(26), destination: text(30), protocol: frame[23]!, transport };
};

/** Extension headers are not walked: the lab's own packets have none in front of UDP. */
const ipv6 = (frame: Buffer): IpHeader | undefined => {
  if (frame.length < 54) return undefined;
  const text = (at: number): string => formatAddress(addressFromBytes(frame.subarray(at, at + 16)));
  return { source: text(22), destination: text(38), protocol: frame[20]!, transport: 54 };
};

/** An Ethernet frame. */
export const parseFrame = (frame: Buffer): Packet => {
  const etherType = frame.length >= ETHERNET ? frame.readUInt16BE(12) : 0;
  const ip = etherType === IPV4 ? ipv4(frame) : etherType === IPV6 ? ipv6(frame) : undefined;
  const isPortful = ip?.protocol === UDP || ip?.protocol === TCP;
  const at = isPortful && ip.transport !== undefined && frame.length >= ip.transport + 8 ? ip.transport : undefined;
  return {
    etherType,
    source: ip?.source,
    destination: ip?.destination,
    protocol: ip?.protocol,
    sourcePort: at === undefined ? undefined : frame.readUInt16BE(at),
    destinationPort: at === undefined ? undefined : frame.readUInt16BE(at + 2),
    payload: at !== undefined && ip?.protocol === UDP ? frame.subarray(at + 8) : frame,
    frame,
  };
};

export interface CapturedPacket extends Packet {
  /** Since 1970. */
  readonly atMs: number;
}

/** @throws Error for a file that is none */
export const parsePcap = (file: Buffer): CapturedPacket[] => {
  if (file.length < FILE_HEADER || !MAGICS.has(file.readUInt32LE(0)))
    throw new Error('this is no little-endian pcap file');
  const packets: CapturedPacket[] = [];
  for (let at = FILE_HEADER; at + PACKET_HEADER <= file.length;) {
    const length = file.readUInt32LE(at + 8);
    const packet = parseFrame(file.subarray(at + PACKET_HEADER, at + PACKET_HEADER + length));
    packets.push({ ...packet, atMs: file.readUInt32LE(at) * 1000 + file.readUInt32LE(at + 4) / 1000 });
    at += PACKET_HEADER + length;
  }
  return packets;
};

const [HOP_LIMIT_AT, ICMPV6_TYPE_AT] = [21, 54] as const;
const ICMPV6 = 58;
/** Router solicitation to redirect. */
const NEIGHBOR_DISCOVERY = { first: 133, last: 137 } as const;

/** Neighbor discovery, which stays on its link: a hop limit of 255 says that no router has forwarded it (RFC 4861, 6.1 and 7.1). */
export const isNeighborDiscovery = ({ etherType, protocol, frame }: Packet): boolean => {
  const type = frame[ICMPV6_TYPE_AT] ?? 0;
  return (
    etherType === IPV6 &&
    protocol === ICMPV6 &&
    frame[HOP_LIMIT_AT] === 255 &&
    type >= NEIGHBOR_DISCOVERY.first &&
    type <= NEIGHBOR_DISCOVERY.last
  );
};

/** A WireGuard message: type 1 to 4 and three zero bytes (WireGuard protocol, "Protocol & Cryptography"). */
export const isWireGuard = ({ protocol, payload }: Packet): boolean =>
  protocol === UDP && payload.length >= 32 && payload[0]! >= 1 && payload[0]! <= 4 && payload.readUIntBE(1, 3) === 0;
