import { addressToBytes, parseAddress } from '@unbounded/ip';

/**
 * The echo packet (RFC 5880 6.4, RFC 9747): an IP packet that a node sends through a gateway to itself. Nobody else reads it. IPv4
 * (RFC 791) with 20 bytes of header, or IPv6 (RFC 8200) without extension headers; UDP (RFC 768); then, in network byte order,
 *
 *      0  u32  magic "UBEC"
 *      4  u8   version, 1
 *      5  …    zero
 *      8  u32  id: which of the sender's echoes it is, and so its family too
 *     12  u32  zero
 *     16  u64  sequence
 *     24  16   token: random, made for this packet alone; only who has seen the packet knows it
 */

export interface Echo {
  /** Of the session, which is of one gateway and family. */
  readonly id: number;
  readonly sequence: bigint;
  /** {@link TOKEN_BYTES}. */
  readonly token: Uint8Array;
}

export interface EchoRoute {
  /** The node's echo address. */
  readonly source: string;
  /** Where it is sent: its source takes the place of this on the way out. */
  readonly destination: string;
}

/** Why a packet is no echo; also the label of a metric. */
export type EchoFault = 'length' | 'address' | 'ports' | 'magic' | 'version' | 'malformed';

export class EchoError extends Error {
  readonly fault: EchoFault;
  constructor(fault: EchoFault, message: string) {
    super(message);
    this.name = 'EchoError';
    this.fault = fault;
  }
}

/** Of UDP. They differ, so that connection tracking tells the directions of the flow apart. */
export const ECHO_PORTS = { source: 9997, destination: 9998 } as const;

const MAGIC = 0x55424543;
const VERSION = 1;
/** Of the payload, what differs between the echoes by a route. */
const CHANGES_AT = 8;
const TOKEN_AT = 24;
export const TOKEN_BYTES = 16;
const PAYLOAD_BYTES = TOKEN_AT + TOKEN_BYTES;
const UDP = 17;
const UDP_BYTES = 8;
/** A packet that goes round ends soon; it crosses the node itself and a gateway. */
const HOPS = 8;
const DONT_FRAGMENT = 0x4000;
const HEADER = {
  4: { bytes: 20, source: 12, destination: 16, protocol: 9 },
  6: { bytes: 40, source: 8, destination: 24, protocol: 6 },
} as const;
const LARGEST_U32 = 0xffff_ffff;
const LARGEST_U64 = 0xffff_ffff_ffff_ffffn;

/** The bytes as numbers of 32 bits, added up: of any such sum {@link checksumOf} makes the checksum. */
const sumOf = (view: DataView, from: number, end: number): number => {
  let sum = 0;
  for (let at = from; at < end; at += 4) sum += view.getUint32(at);
  return sum;
};

/** RFC 1071: a sum of words of 32 bits has the remainder that one of words of 16 bits has. Never 0, which would say that there is none. */
const checksumOf = (sum: number): number => 0xffff - (sum % 0xffff);

const writeHeader = (packet: Uint8Array, view: DataView, family: 4 | 6): void => {
  const { bytes } = HEADER[family];
  if (family === 6) {
    view.setUint32(0, 0x6000_0000);
    view.setUint16(4, packet.length - bytes);
    view.setUint8(6, UDP);
    view.setUint8(7, HOPS);
    return;
  }
  view.setUint8(0, 0x45);
  view.setUint16(2, packet.length);
  view.setUint16(6, DONT_FRAGMENT);
  view.setUint8(8, HOPS);
  view.setUint8(9, UDP);
  view.setUint16(10, checksumOf(sumOf(view, 0, bytes)));
};

const writeUdp = (packet: Uint8Array, view: DataView, family: 4 | 6): void => {
  const { bytes } = HEADER[family];
  view.setUint16(bytes, ECHO_PORTS.source);
  view.setUint16(bytes + 2, ECHO_PORTS.destination);
  view.setUint16(bytes + 4, packet.length - bytes);
};

const checkEcho = ({ id, sequence, token }: Echo): void => {
  if (!Number.isInteger(id) || id < 0 || id > LARGEST_U32)
    throw new RangeError(`id is ${id}: it must be an integer within 0..${LARGEST_U32}`);
  if (sequence < 0n || sequence > LARGEST_U64)
    throw new RangeError(`sequence is ${sequence}: it must fit into 64 bits without a sign`);
  if (token.length !== TOKEN_BYTES)
    throw new RangeError(`token has ${token.length} bytes: it must have ${TOKEN_BYTES}`);
};

/** What all packets by a route have in common, and its sum. */
const layOut = (route: EchoRoute) => {
  const [source, destination] = [parseAddress(route.source), parseAddress(route.destination)];
  const { family } = source;
  if (family !== destination.family)
    throw new RangeError(`destination is ${route.destination}: it must be of the family of source ${route.source}`);
  const layout = HEADER[family];
  const at = layout.bytes + UDP_BYTES;
  const packet = new Uint8Array(at + PAYLOAD_BYTES);
  const view = new DataView(packet.buffer);
  packet.set(addressToBytes(source), layout.source);
  packet.set(addressToBytes(destination), layout.destination);
  view.setUint32(at, MAGIC);
  view.setUint8(at + 4, VERSION);
  writeHeader(packet, view, family);
  writeUdp(packet, view, family);
  // With the pseudo header, of which protocol and length are no words of the packet.
  const sum = UDP + packet.length - layout.bytes + sumOf(view, layout.source, at + CHANGES_AT);
  return { packet, view, at, sum };
};

/**
 * For the echoes by one route, which are many: what they have in common is written and added up once.
 * @returns what writes the whole IP packet, each time over the one before; it throws a RangeError that names the field that is not valid
 * @throws RangeError when the families differ; AddressSyntaxError
 */
export const createEchoEncoder = (route: EchoRoute): ((echo: Echo) => Uint8Array) => {
  const { packet, view, at, sum } = layOut(route);
  return (echo) => {
    checkEcho(echo);
    view.setUint32(at + 8, echo.id);
    view.setBigUint64(at + 16, echo.sequence);
    packet.set(echo.token, at + TOKEN_AT);
    view.setUint16(at - 2, checksumOf(sum + sumOf(view, at + CHANGES_AT, packet.length)));
    return packet;
  };
};

const checkHeader = (packet: Uint8Array, view: DataView, family: 4 | 6): void => {
  const { bytes, protocol } = HEADER[family];
  const wanted = bytes + UDP_BYTES + PAYLOAD_BYTES;
  const said = family === 4 ? view.getUint16(2) : view.getUint16(4) + bytes;
  const isPlain = (family === 6 || packet[0] === 0x45) && packet[protocol] === UDP;
  if (packet.length !== wanted || said !== wanted || !isPlain)
    throw new EchoError('length', `${packet.length} bytes: an echo of IPv${family} has ${wanted}, with a plain header`);
};

/** @param own the address as words of 32 bits */
const checkEnds = (view: DataView, family: 4 | 6, own: readonly number[]): void => {
  const { bytes, source, destination } = HEADER[family];
  for (let index = 0; index < own.length; index++)
    if (view.getUint32(source + 4 * index) !== own[index] || view.getUint32(destination + 4 * index) !== own[index])
      throw new EchoError('address', 'the packet is not from the echo address to itself');
  if (view.getUint16(bytes) !== ECHO_PORTS.source || view.getUint16(bytes + 2) !== ECHO_PORTS.destination)
    throw new EchoError('ports', 'the packet has other UDP ports than an echo');
};

const wordsOf = (bytes: Uint8Array): number[] => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return Array.from({ length: bytes.length / 4 }, (_, index) => view.getUint32(4 * index));
};

/**
 * Reads packets from outside. Their checksums of IP and UDP are not looked at: the token is right, or it is none of ours.
 * @param address the node's echo address, in whose family packets have to be
 * @returns what reads one, with a view of the packet's token; it throws an EchoError
 * @throws AddressSyntaxError
 */
export const createEchoDecoder = (address: string): ((packet: Uint8Array) => Echo) => {
  const { family, value } = parseAddress(address);
  const own = wordsOf(addressToBytes({ family, value }));
  const { bytes } = HEADER[family];
  const at = bytes + UDP_BYTES;
  return (packet) => {
    if ((packet[0] ?? 0) >> 4 !== family || packet.length < bytes)
      throw new EchoError('length', `${packet.length} bytes are no packet of IPv${family}`);
    const view = new DataView(packet.buffer, packet.byteOffset, packet.length);
    checkHeader(packet, view, family);
    checkEnds(view, family, own);
    if (view.getUint32(at) !== MAGIC) throw new EchoError('magic', 'the packet does not begin as an echo');
    const version = view.getUint8(at + 4);
    if (version !== VERSION) throw new EchoError('version', `echo version ${version}: this is version ${VERSION}`);
    if (view.getUint8(at + 5) !== 0 || view.getUint16(at + 6) !== 0 || view.getUint32(at + 12) !== 0)
      throw new EchoError('malformed', 'bytes that must be 0 are not');
    const token = packet.subarray(at + TOKEN_AT);
    return { id: view.getUint32(at + 8), sequence: view.getBigUint64(at + 16), token };
  };
};
