import { macBytes, macText } from '@unbounded/ip';
import { addressBytes, addressText } from '@unbounded/netlink';

/** Neighbor solicitations and advertisements (RFC 4861) over Ethernet, in whole frames. */

export const ETHERTYPE_IPV6 = 0x86dd;
export const UNSPECIFIED = '::';
const ALL_NODES = 'ff02::1';

const TYPE = { solicitation: 135, advertisement: 136 } as const;
/** Of an address of the sender, and of the target. */
const LINK_LAYER_OPTION = { solicitation: 1, advertisement: 2 } as const;

export interface NeighborMessage {
  readonly kind: keyof typeof TYPE;
  /** Of the frame. */
  readonly sourceMac: string;
  readonly source: string;
  /** A multicast address: its MAC is the frame's destination. */
  readonly destination: string;
  readonly target: string;
  /** Solicitation: of its source. Advertisement: of its target. */
  readonly linkLayerMac?: string;
  /** Of an advertisement: what neighbors know is replaced. */
  readonly override?: boolean;
}

const ICMPV6 = 58;
const HOP_LIMIT = 255;
const OVERRIDE = 0x20;
const AT = { version: 14, payloadLength: 18, nextHeader: 20, hopLimit: 21, source: 22, destination: 38, message: 54 };
/** From the beginning of the message. */
const IN_MESSAGE = { type: 0, code: 1, checksum: 2, flags: 4, target: 8, options: 24 } as const;
const OPTION_BYTES = 8;

/** RFC 1071, of the message and what it covers of the IPv6 header; 0 over a message with the right one in it. */
const checksum = (frame: Uint8Array, messageBytes: number): number => {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.length);
  let sum = ICMPV6 + messageBytes;
  const end = AT.message + messageBytes;
  for (let at = AT.source; at < end; at += 2) sum += at + 1 < end ? view.getUint16(at) : frame[at]! << 8;
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
};

const v6Bytes = (field: string, address: string): Uint8Array => {
  const bytes = addressBytes(address);
  if (bytes.length !== 16) throw new RangeError(`${field} is ${address}: it must be an IPv6 address`);
  return bytes;
};

/** Where a multicast address is sent to (RFC 2464, 7). */
export const multicastMac = (group: string): string =>
  macText(Uint8Array.of(0x33, 0x33, ...v6Bytes('group', group).subarray(12)));

/** The group of those that may have the address (RFC 4291, 2.7.1). */
export const solicitedNodeGroup = (address: string): string =>
  addressText(
    Uint8Array.of(0xff, 2, ...Array<number>(9).fill(0), 1, 0xff, ...v6Bytes('address', address).subarray(13)),
  );

export const encodeNeighborMessage = (message: NeighborMessage): Uint8Array => {
  const messageBytes = IN_MESSAGE.options + (message.linkLayerMac === undefined ? 0 : OPTION_BYTES);
  const frame = new Uint8Array(AT.message + messageBytes);
  const view = new DataView(frame.buffer);
  frame.set(macBytes(multicastMac(message.destination)));
  frame.set(macBytes(message.sourceMac), 6);
  view.setUint16(12, ETHERTYPE_IPV6);
  frame[AT.version] = 0x60;
  view.setUint16(AT.payloadLength, messageBytes);
  frame[AT.nextHeader] = ICMPV6;
  frame[AT.hopLimit] = HOP_LIMIT;
  frame.set(v6Bytes('source', message.source), AT.source);
  frame.set(v6Bytes('destination', message.destination), AT.destination);
  const body = frame.subarray(AT.message);
  body[IN_MESSAGE.type] = TYPE[message.kind];
  if (message.override) body[IN_MESSAGE.flags] = OVERRIDE;
  body.set(v6Bytes('target', message.target), IN_MESSAGE.target);
  if (message.linkLayerMac !== undefined)
    body.set([LINK_LAYER_OPTION[message.kind], 1, ...macBytes(message.linkLayerMac)], IN_MESSAGE.options);
  view.setUint16(AT.message + IN_MESSAGE.checksum, checksum(frame, messageBytes));
  return frame;
};

/** The MAC of the message's own option; undefined without one, false when an option is none (RFC 4861, 7.1: such a message is dropped). */
const readOptions = (options: Uint8Array, wanted: number): string | undefined | false => {
  let mac: string | undefined;
  for (let at = 0; at < options.length;) {
    const bytes = 8 * (options[at + 1] ?? 0);
    if (bytes === 0 || at + bytes > options.length) return false;
    if (options[at] === wanted && bytes === OPTION_BYTES) mac ??= macText(options.subarray(at + 2, at + 8));
    at += bytes;
  }
  return mac;
};

/** Payload length when the frame is IPv6 with ICMPv6 of this link, whole and unchanged; else 0. */
const validMessageBytes = (frame: Uint8Array, view: DataView): number => {
  if (frame.length < AT.message + IN_MESSAGE.options || view.getUint16(12) !== ETHERTYPE_IPV6) return 0;
  const messageBytes = view.getUint16(AT.payloadLength);
  const isWhole = messageBytes >= IN_MESSAGE.options && AT.message + messageBytes <= frame.length;
  // A router takes one off the hop limit: what has 255 was sent on this link.
  if (frame[AT.version]! >> 4 !== 6 || frame[AT.nextHeader] !== ICMPV6 || frame[AT.hopLimit] !== HOP_LIMIT) return 0;
  return isWhole && checksum(frame, messageBytes) === 0 ? messageBytes : 0;
};

/** undefined for what RFC 4861, 7.1 tells to drop, and for what is neither of the two; bytes behind the packet are padding. */
export const decodeNeighborMessage = (frame: Uint8Array): NeighborMessage | undefined => {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.length);
  const body = frame.subarray(AT.message, AT.message + validMessageBytes(frame, view));
  const kind = body[IN_MESSAGE.type] === TYPE.solicitation ? 'solicitation' : 'advertisement';
  if (body[IN_MESSAGE.type] !== TYPE[kind] || body[IN_MESSAGE.code] !== 0) return undefined;
  const mac = readOptions(body.subarray(IN_MESSAGE.options), LINK_LAYER_OPTION[kind]);
  const target = body.subarray(IN_MESSAGE.target, IN_MESSAGE.options);
  if (mac === false || target[0] === 0xff) return undefined;
  const addressAt = (at: number): string => addressText(frame.subarray(at, at + 16));
  const source = addressAt(AT.source);
  // Duplicate address detection has no address yet that a MAC could belong to.
  if (kind === 'solicitation' && source === UNSPECIFIED && mac !== undefined) return undefined;
  return {
    kind,
    sourceMac: macText(frame.subarray(6, 12)),
    source,
    destination: addressAt(AT.destination),
    target: addressText(target),
    ...(mac !== undefined && { linkLayerMac: mac }),
    ...(kind === 'advertisement' && { override: (body[IN_MESSAGE.flags]! & OVERRIDE) !== 0 }),
  };
};

/** "It is here", unasked, to everybody (RFC 4861, 7.2.6). */
export const neighborAnnouncement = (address: string, mac: string): Uint8Array =>
  encodeNeighborMessage({
    kind: 'advertisement',
    sourceMac: mac,
    source: address,
    destination: ALL_NODES,
    target: address,
    linkLayerMac: mac,
    override: true,
  });

/** "Has anybody got it?" of duplicate address detection (RFC 4862, 5.4.2). */
export const neighborProbe = (address: string, mac: string): Uint8Array =>
  encodeNeighborMessage({
    kind: 'solicitation',
    sourceMac: mac,
    source: UNSPECIFIED,
    destination: solicitedNodeGroup(address),
    target: address,
  });
