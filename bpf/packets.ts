import { addressToBytes, parseAddress } from '@unbounded/ip';

/** Packets for the tests of the programs, byte by byte. */

export interface Flow {
  readonly source: string;
  readonly destination: string;
  readonly protocol?: number;
  readonly ports?: readonly [source: number, destination: number];
  /** Bytes of IPv4 options, a multiple of 4. */
  readonly options?: number;
  /** IPv4: flags and offset. */
  readonly fragment?: number;
  /** IPv6: headers before the last, as [its number, its bytes]. */
  readonly extensions?: readonly (readonly [number, Uint8Array])[];
}

const ETHERNET = 14;
const UDP = 17;
const PAYLOAD = 32;

const bytesOf = (address: string): Uint8Array => addressToBytes(parseAddress(address));

const transport = ({ ports = [40000, 80] }: Flow): Uint8Array => {
  const bytes = new Uint8Array(8 + PAYLOAD);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, ports[0]);
  view.setUint16(2, ports[1]);
  view.setUint16(4, bytes.length);
  return bytes;
};

const join = (...parts: readonly Uint8Array[]): Uint8Array => Uint8Array.from(parts.flatMap((part) => [...part]));

const ipv4 = (flow: Flow): Uint8Array => {
  const payload = transport(flow);
  const header = new Uint8Array(20 + (flow.options ?? 0));
  const view = new DataView(header.buffer);
  header[0] = 0x40 | (header.length / 4);
  view.setUint16(2, header.length + payload.length);
  view.setUint16(6, flow.fragment ?? 0);
  header[8] = 64;
  header[9] = flow.protocol ?? UDP;
  header.set(bytesOf(flow.source), 12);
  header.set(bytesOf(flow.destination), 16);
  return join(header, payload);
};

const ipv6 = (flow: Flow): Uint8Array => {
  const payload = transport(flow);
  const chain = flow.extensions ?? [];
  const last = flow.protocol ?? UDP;
  const headers = chain.map(([, bytes], index) =>
    Uint8Array.from([chain[index + 1]?.[0] ?? last, ...bytes.subarray(1)]),
  );
  const header = new Uint8Array(40);
  header[0] = 0x60;
  new DataView(header.buffer).setUint16(4, payload.length + headers.reduce((sum, bytes) => sum + bytes.length, 0));
  header[6] = chain[0]?.[0] ?? last;
  header[7] = 64;
  header.set(bytesOf(flow.source), 8);
  header.set(bytesOf(flow.destination), 24);
  return join(header, ...headers, payload);
};

const isIpv6 = (address: string): boolean => address.includes(':');
export const ip = (flow: Flow): Uint8Array => (isIpv6(flow.destination) ? ipv6(flow) : ipv4(flow));

export const ANCHOR_MACS = Uint8Array.of(0x0e, 1, 2, 3, 4, 5, 0x0e, 6, 7, 8, 9, 10);

export const frame = (flow: Flow): Uint8Array => {
  const type = isIpv6(flow.destination) ? [0x86, 0xdd] : [0x08, 0x00];
  return join(ANCHOR_MACS, Uint8Array.from(type), ip(flow));
};

/** RFC 1071, over words of the given parts. */
export const checksum = (...parts: readonly Uint8Array[]): number => {
  const bytes = join(...parts);
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 2) sum += bytes[at]! * 256 + (bytes[at + 1] ?? 0);
  while (sum > 0xffff) sum = (sum >>> 16) + (sum & 0xffff);
  return ~sum & 0xffff;
};

interface Summed {
  /** Where the checksum stands in the frame. */
  readonly at: number;
  /** What it covers. */
  readonly parts: readonly Uint8Array[];
}

/** The checksums of a frame with UDP and without options or extension headers: of the IPv4 header, and of UDP. */
const sumsOf = (bytes: Uint8Array): Summed[] => {
  const is4 = bytes[ETHERNET]! >> 4 === 4;
  const [header, addresses] = is4 ? [20, 12] : [40, 8];
  const udp = bytes.subarray(ETHERNET + header);
  const pseudo = [
    bytes.subarray(ETHERNET + addresses, ETHERNET + header),
    Uint8Array.of(0, UDP, udp.length >> 8, udp.length & 0xff),
  ];
  return [
    ...(is4 ? [{ at: ETHERNET + 10, parts: [bytes.subarray(ETHERNET, ETHERNET + header)] }] : []),
    { at: ETHERNET + header + 6, parts: [...pseudo, udp] },
  ];
};

/** The frame with the checksums that it lacks. */
export const withChecksums = (bytes: Uint8Array): Uint8Array => {
  const summed = Uint8Array.from(bytes);
  for (const { at, parts } of sumsOf(summed)) new DataView(summed.buffer).setUint16(at, checksum(...parts));
  return summed;
};

/** Whether all of its checksums are right. */
export const isSummed = (bytes: Uint8Array): boolean => sumsOf(bytes).every(({ parts }) => checksum(...parts) === 0);
