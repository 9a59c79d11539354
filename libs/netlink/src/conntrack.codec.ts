import { AF, addressBytes, addressText } from './address.codec.ts';
import { type Attribute, MessageWriter, readAttributes } from './attribute.codec.ts';
import { NetlinkDecodeError } from './message.codec.ts';

/** Connection tracking over nfnetlink (linux/netfilter/nfnetlink_conntrack.h). */

const SUBSYSTEM = 1 << 8; // NFNL_SUBSYS_CTNETLINK
export const CONNTRACK_MESSAGE = { new: SUBSYSTEM, get: SUBSYSTEM | 1, delete: SUBSYSTEM | 2 } as const;
const CTA = { original: 1, reply: 2, id: 12, filter: 25 } as const;
const TUPLE = { ip: 1, protocol: 2 } as const;
const PORTS = { source: 2, destination: 3 } as const; // beside the protocol's number; ICMP has none
const IP = { v4Source: 1, v4Destination: 2, v6Source: 3, v6Destination: 4 } as const;
const PROTOCOL_NUMBER = 1;
/** CTA_FILTER_ORIG_FLAGS, and of its bits that for the source. */
const [ORIGINAL_FLAGS, SOURCE_FLAG] = [1, 1];
/** CTA_FILTER_REPLY_FLAGS, and of its bits that for the destination. */
const [REPLY_FLAGS, DESTINATION_FLAG] = [2, 2];
/** struct nfgenmsg: u8 family, u8 version, be16 resource. */
const HEADER_BYTES = 4;

/** One direction, as its packets have it on their way in. */
interface ConnectionTuple {
  readonly source: string;
  readonly destination: string;
}

export interface Connection {
  readonly family: 4 | 6;
  /** IP protocol number. */
  readonly protocol: number;
  readonly original: ConnectionTuple;
  /** Of the answers: its destination is what the source was translated to, or the source itself. */
  readonly reply: ConnectionTuple;
  /** By which the kernel knows it: given back as it came. */
  readonly key: { readonly tuple: Uint8Array; readonly id: Uint8Array | undefined };
}

const header = (af: number): MessageWriter => new MessageWriter(64).u8(af).zeros(HEADER_BYTES - 1);

/** All connections of a family. */
export const encodeConnections = (family: 4 | 6): Uint8Array => header(family === 4 ? AF.inet : AF.inet6).bytes();

/**
 * Those that come from an IPv4 address; kernels before 5.8 pass over the filter, and list all of the family. Of IPv6 the kernel
 * (ctnetlink_filter_match_tuple, seen on 6.18) leaves out the very ones that match.
 */
export const encodeConnectionsFrom = (source: string): Uint8Array =>
  header(AF.inet)
    .nest(CTA.original, (w) => w.nest(TUPLE.ip, (ip) => ip.attribute(IP.v4Source, addressBytes(source))))
    .nest(CTA.filter, (w) => w.attributeU32(ORIGINAL_FLAGS, SOURCE_FLAG))
    .bytes();

/** Those whose answers go to an IPv4 address; kernels before 5.8 list all. */
export const encodeConnectionsAnsweredAt = (address: string): Uint8Array =>
  header(AF.inet)
    .nest(CTA.reply, (w) => w.nest(TUPLE.ip, (ip) => ip.attribute(IP.v4Destination, addressBytes(address))))
    .nest(CTA.filter, (w) => w.attributeU32(REPLY_FLAGS, DESTINATION_FLAG))
    .bytes();

export const encodeConnectionKey = ({ family, key }: Pick<Connection, 'family' | 'key'>): Uint8Array => {
  const writer = header(family === 4 ? AF.inet : AF.inet6).nest(CTA.original, (w) => w.raw(key.tuple));
  if (key.id) writer.attribute(CTA.id, key.id);
  return writer.bytes();
};

const addressesOf = (tuple: Attribute): ConnectionTuple => {
  const ip = tuple.nested().get(TUPLE.ip)?.nested();
  const source = ip?.get(IP.v4Source) ?? ip?.get(IP.v6Source);
  const destination = ip?.get(IP.v4Destination) ?? ip?.get(IP.v6Destination);
  if (!source || !destination) throw new NetlinkDecodeError('connection without its addresses');
  return { source: addressText(source.bytes), destination: addressText(destination.bytes) };
};

/** Connections with the same answers, but for the port to which these go. */
export interface Answers {
  /** IP protocol number. */
  readonly protocol: number;
  /** Where the answers go to: what the source was translated to, or the source itself. */
  readonly address: string;
  /** Who answers. */
  readonly peer: string;
  /** 0 where the protocol has none. */
  readonly peerPort: number;
}

/** Where attributes of these types begin and end; nothing is made of the others: there may be a hundred thousand such messages. */
const find = (bytes: Uint8Array, start: number, end: number, wanted: number): readonly [number, number] | undefined => {
  for (let at = start; at + 4 <= end;) {
    const length = bytes[at]! | (bytes[at + 1]! << 8);
    if (length < 4 || at + length > end) throw new NetlinkDecodeError(`attribute of ${length} bytes in a connection`);
    if ((bytes[at + 2]! | ((bytes[at + 3]! & 0x3f) << 8)) === wanted) return [at + 4, at + length];
    at += (length + 3) & ~3;
  }
  return undefined;
};

const text = new TextDecoder('latin1');

/**
 * Decodes one IPCTNL_MSG_CT_NEW after the other; those with the same answers give the same object. @throws NetlinkDecodeError
 * @param isWanted by the address to which the answers go
 */
export const createAnswersDecoder = (isWanted: (address: string) => boolean) => {
  const known = new Map<string, Answers | undefined>();
  const read = (bytes: Uint8Array, [ipStart, ipEnd]: readonly [number, number], protocol: number, peerPort: number) => {
    const ip = readAttributes(bytes.subarray(ipStart, ipEnd));
    const source = ip.get(IP.v4Source) ?? ip.get(IP.v6Source);
    const destination = ip.get(IP.v4Destination) ?? ip.get(IP.v6Destination);
    if (!source || !destination) throw new NetlinkDecodeError('connection without its addresses');
    const address = addressText(destination.bytes);
    return isWanted(address) ? { protocol, address, peer: addressText(source.bytes), peerPort } : undefined;
  };
  return (body: Uint8Array): Answers | undefined => {
    const reply = find(body, HEADER_BYTES, body.length, CTA.reply);
    const ip = reply && find(body, ...reply, TUPLE.ip);
    const protocolNest = reply && find(body, ...reply, TUPLE.protocol);
    if (!ip || !protocolNest) throw new NetlinkDecodeError('connection without its answers');
    const number = find(body, ...protocolNest, PROTOCOL_NUMBER);
    const port = find(body, ...protocolNest, PORTS.source);
    const protocol = number ? body[number[0]]! : 0;
    const peerPort = port ? (body[port[0]]! << 8) | body[port[0] + 1]! : 0;
    const key = `${protocol} ${peerPort} ${text.decode(body.subarray(...ip))}`;
    if (!known.has(key)) known.set(key, read(body, ip, protocol, peerPort));
    return known.get(key);
  };
};

/** One IPCTNL_MSG_CT_NEW. @throws NetlinkDecodeError */
export const decodeConnection = (body: Uint8Array): Connection => {
  if (body.length < HEADER_BYTES)
    throw new NetlinkDecodeError(
      `connection message of ${body.length} bytes: struct nfgenmsg alone has ${HEADER_BYTES}`,
    );
  const attributes = readAttributes(body.subarray(HEADER_BYTES));
  const [original, reply] = [attributes.get(CTA.original), attributes.get(CTA.reply)];
  if (!original || !reply) throw new NetlinkDecodeError('connection without one of its directions');
  const id = attributes.get(CTA.id)?.bytes;
  const protocol = original.nested().get(TUPLE.protocol)?.nested().get(PROTOCOL_NUMBER)?.u8;
  return {
    family: body[0] === AF.inet ? 4 : 6,
    protocol: protocol ?? 0,
    original: addressesOf(original),
    reply: addressesOf(reply),
    // The receive buffer is used again.
    key: { tuple: Uint8Array.from(original.bytes), id: id && Uint8Array.from(id) },
  };
};
