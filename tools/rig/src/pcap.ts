/** Reads pcap files (the classic format, libpcap's savefile manual page) of Ethernet captures. */

export interface Packet {
  readonly etherType: number;
  /** Text for IPv4; undefined for what is no IPv4. */
  readonly source: string | undefined;
  readonly destination: string | undefined;
  /** IP protocol number. */
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
const IPV4 = 0x0800;
const UDP = 17;
const TCP = 6;

const address = (frame: Buffer, at: number): string => [...frame.subarray(at, at + 4)].join('.');

/** An Ethernet frame. */
export const parseFrame = (frame: Buffer): Packet => {
  const etherType = frame.length >= 14 ? frame.readUInt16BE(12) : 0;
  const none = {
    source: undefined,
    destination: undefined,
    protocol: undefined,
    sourcePort: undefined,
    destinationPort: undefined,
  };
  if (etherType !== IPV4 || frame.length < 34) return { etherType, ...none, payload: frame, frame };
  const protocol = frame[23]!;
  const transport = 14 + (frame[14]! & 15) * 4;
  const isFirst = (frame.readUInt16BE(20) & 0x1fff) === 0;
  const hasPorts = isFirst && (protocol === UDP || protocol === TCP) && frame.length >= transport + 8;
  return {
    etherType,
    source: address(frame, 26),
    destination: address(frame, 30),
    protocol,
    sourcePort: hasPorts ? frame.readUInt16BE(transport) : undefined,
    destinationPort: hasPorts ? frame.readUInt16BE(transport + 2) : undefined,
    payload: hasPorts && protocol === UDP ? frame.subarray(transport + 8) : frame,
    frame,
  };
};

/** @throws Error for a file that is none */
export const parsePcap = (file: Buffer): Packet[] => {
  if (file.length < FILE_HEADER || !MAGICS.has(file.readUInt32LE(0)))
    throw new Error('this is no little-endian pcap file');
  const packets: Packet[] = [];
  for (let at = FILE_HEADER; at + PACKET_HEADER <= file.length;) {
    const length = file.readUInt32LE(at + 8);
    packets.push(parseFrame(file.subarray(at + PACKET_HEADER, at + PACKET_HEADER + length)));
    at += PACKET_HEADER + length;
  }
  return packets;
};

/** A WireGuard message: type 1 to 4 and three zero bytes (WireGuard protocol, "Protocol & Cryptography"). */
export const isWireGuard = ({ protocol, payload }: Packet): boolean =>
  protocol === UDP && payload.length >= 32 && payload[0]! >= 1 && payload[0]! <= 4 && payload.readUIntBE(1, 3) === 0;
