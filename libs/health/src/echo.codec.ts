import { addressToBytes, parseAddress } from '@unbounded/ip';
import { areEqual } from './probe.codec.ts';

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
const TOKEN_AT = 24;
export const TOKEN_BYTES = 16;
const PAYLOAD_BYTES = TOKEN_AT + TOKEN_BYTES;
const UDP = 17;
const UDP_BYTES = 8;
/** A packet that goes round ends soon; it crosses the node itself and a gateway. */
const HOPS = 8;
const DONT_FRAGMENT = 0x4000;
const HEADER = {
  4: { bytes: 20, source: 12, destination: 16, addressBytes: 4, protocol: 9 },
  6: { bytes: 40, source: 8, destination: 24, addressBytes: 16, protocol: 6 },
} as const;
const LARGEST_U32 = 0xffff_ffff;
const LARGEST_U64 = 0xffff_ffff_ffff_ffffn;

/** RFC 1071. */
const sumOf = (...parts: readonly Uint8Array[]): number => {
  let sum = 0;
  for (const part of parts) for (let at = 0; at < part.length; at += 2) sum += part[at]! * 256 + (part[at + 1] ?? 0);
  while (sum > 0xffff) sum = (sum >>> 16) + (sum & 0xffff);
  return ~sum & 0xffff;
};

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
  view.setUint16(10, sumOf(packet.subarray(0, bytes)));
};

const writeUdp = (packet: Uint8Array, view: DataView, family: 4 | 6): void => {
  const { bytes, source } = HEADER[family];
  const datagram = packet.subarray(bytes);
  view.setUint16(bytes, ECHO_PORTS.source);
  view.setUint16(bytes + 2, ECHO_PORTS.destination);
  view.setUint16(bytes + 4, datagram.length);
  const pseudo = Uint8Array.of(0, UDP, datagram.length >> 8, datagram.length & 0xff);
  view.setUint16(bytes + 6, sumOf(packet.subarray(source, bytes), pseudo, datagram) || 0xffff); // 0 would say that there is none
};

const checkEcho = ({ id, sequence, token }: Echo): void => {
  if (!Number.isInteger(id) || id < 0 || id > LARGEST_U32)
    throw new RangeError(`id is ${id}: it must be an integer within 0..${LARGEST_U32}`);
  if (sequence < 0n || sequence > LARGEST_U64)
    throw new RangeError(`sequence is ${sequence}: it must fit into 64 bits without a sign`);
  if (token.length !== TOKEN_BYTES)
    throw new RangeError(`token has ${token.length} bytes: it must have ${TOKEN_BYTES}`);
};

/** The whole IP packet. @throws RangeError naming the field that is not valid; AddressSyntaxError */
export const encodeEcho = (echo: Echo, route: EchoRoute): Uint8Array => {
  checkEcho(echo);
  const [source, destination] = [parseAddress(route.source), parseAddress(route.destination)];
  if (source.family !== destination.family)
    throw new RangeError(`destination is ${route.destination}: it must be of the family of source ${route.source}`);
  const layout = HEADER[source.family];
  const packet = new Uint8Array(layout.bytes + UDP_BYTES + PAYLOAD_BYTES);
  const view = new DataView(packet.buffer);
  const payload = packet.subarray(layout.bytes + UDP_BYTES);
  packet.set(addressToBytes(source), layout.source);
  packet.set(addressToBytes(destination), layout.destination);
  const at = layout.bytes + UDP_BYTES;
  view.setUint32(at, MAGIC);
  view.setUint8(at + 4, VERSION);
  view.setUint32(at + 8, echo.id);
  view.setBigUint64(at + 16, echo.sequence);
  payload.set(echo.token, TOKEN_AT);
  writeHeader(packet, view, source.family);
  writeUdp(packet, view, source.family);
  return packet;
};

const checkHeader = (packet: Uint8Array, view: DataView, family: 4 | 6): void => {
  const { bytes, protocol } = HEADER[family];
  const wanted = bytes + UDP_BYTES + PAYLOAD_BYTES;
  const said = family === 4 ? view.getUint16(2) : view.getUint16(4) + bytes;
  const isPlain = (family === 6 || packet[0] === 0x45) && packet[protocol] === UDP;
  if (packet.length !== wanted || said !== wanted || !isPlain)
    throw new EchoError('length', `${packet.length} bytes: an echo of IPv${family} has ${wanted}, with a plain header`);
};

const checkEnds = (packet: Uint8Array, view: DataView, family: 4 | 6, address: Uint8Array): void => {
  const { bytes, source, destination, addressBytes } = HEADER[family];
  for (const at of [source, destination])
    if (!areEqual(packet.subarray(at, at + addressBytes), address))
      throw new EchoError('address', 'the packet is not from the echo address to itself');
  if (view.getUint16(bytes) !== ECHO_PORTS.source || view.getUint16(bytes + 2) !== ECHO_PORTS.destination)
    throw new EchoError('ports', 'the packet has other UDP ports than an echo');
};

/**
 * Reads a packet from outside. The checksums of IP and UDP are not looked at: the token is right, or it is none of ours.
 * @param address the node's echo address of the packet's family
 * @returns with a view of the packet's token
 * @throws EchoError
 */
export const decodeEcho = (packet: Uint8Array, address: string): Echo => {
  const own = parseAddress(address);
  const version = (packet[0] ?? 0) >> 4;
  if (version !== own.family || packet.length < HEADER[own.family].bytes)
    throw new EchoError('length', `${packet.length} bytes are no packet of IPv${own.family}`);
  const view = new DataView(packet.buffer, packet.byteOffset, packet.length);
  checkHeader(packet, view, own.family);
  checkEnds(packet, view, own.family, addressToBytes(own));
  const at = HEADER[own.family].bytes + UDP_BYTES;
  const payload = packet.subarray(at);
  if (view.getUint32(at) !== MAGIC) throw new EchoError('magic', 'the packet does not begin as an echo');
  if (payload[4] !== VERSION) throw new EchoError('version', `echo version ${payload[4]}: this is version ${VERSION}`);
  if (payload[5] !== 0 || view.getUint16(at + 6) !== 0 || view.getUint32(at + 12) !== 0)
    throw new EchoError('malformed', 'bytes that must be 0 are not');
  return { id: view.getUint32(at + 8), sequence: view.getBigUint64(at + 16), token: payload.subarray(TOKEN_AT) };
};
