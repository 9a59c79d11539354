import { type Attribute, MessageWriter, readAttributes } from './attribute.codec.ts';
import { macBytes, macText } from '@unbounded/ip';
import { readLinkKind, writeLinkKind } from './link-kind.codec.ts';
import { NetlinkDecodeError } from './message.codec.ts';
import {
  type CreatableKind,
  type Link,
  type LinkRef,
  type LinkSettings,
  type LinkStats,
  OPER_STATES,
} from './model/link.ts';

/** RTM_* and IFLA_* of linux/rtnetlink.h and linux/if_link.h. */
export const LINK_MESSAGE = { new: 16, delete: 17, get: 18, set: 19 } as const;
const IFLA = {
  address: 1,
  name: 3,
  mtu: 4,
  link: 5,
  master: 10,
  txQueueLength: 13,
  operState: 16,
  linkInfo: 18,
  alias: 20,
  stats64: 23,
  group: 27,
  netnsFd: 28,
  extMask: 29,
  linkNetnsId: 37,
  targetNetnsId: 46,
} as const;
const IFF = { up: 0x1, noarp: 0x80, lowerUp: 0x1_0000 } as const;
const SKIP_STATS = 8; // RTEXT_FILTER_SKIP_STATS
const IFINFOMSG_BYTES = 16;
const LONGEST_NAME = 15;

/** struct ifinfomsg: u8 family, pad, u16 type, i32 index, u32 flags, u32 change mask. */
const header = (index: number, flags: number, change: number): MessageWriter =>
  new MessageWriter().zeros(4).u32(index).u32(flags).u32(change);

const checkName = (name: string): string => {
  if (name.length === 0 || name.length > LONGEST_NAME || /[\s/:]/.test(name) || name === '.' || name === '..') {
    throw new RangeError(`link name "${name}" must have 1..${LONGEST_NAME} characters without space, / or :`);
  }
  return name;
};

const flagBits = ({ up, arp }: LinkSettings): [flags: number, change: number] => [
  (up ? IFF.up : 0) | (arp === false ? IFF.noarp : 0),
  (up === undefined ? 0 : IFF.up) | (arp === undefined ? 0 : IFF.noarp),
];

/** New link, or changes of link `index`: struct ifinfomsg and the attributes that are given. */
export const encodeLink = (
  index: number,
  settings: LinkSettings & { readonly name?: string; readonly kind?: CreatableKind },
): Uint8Array => {
  const writer = header(index, ...flagBits(settings));
  if (settings.name !== undefined) writer.attributeText(IFLA.name, checkName(settings.name));
  if (settings.mac !== undefined) writer.attribute(IFLA.address, macBytes(settings.mac));
  if (settings.mtu !== undefined) writer.attributeU32(IFLA.mtu, settings.mtu);
  if (settings.txQueuePackets !== undefined) writer.attributeU32(IFLA.txQueueLength, settings.txQueuePackets);
  if (settings.master !== undefined) writer.attributeU32(IFLA.master, settings.master);
  if (settings.alias !== undefined) writer.attributeBareText(IFLA.alias, settings.alias);
  if (settings.group !== undefined) writer.attributeU32(IFLA.group, settings.group);
  if (settings.netnsFd !== undefined) writer.attributeU32(IFLA.netnsFd, settings.netnsFd);
  const { kind } = settings;
  if (kind) writer.nest(IFLA.linkInfo, () => writeLinkKind(writer, kind), false);
  return writer.bytes();
};

/** To get or delete one link; of another namespace by its number (IFLA_TARGET_NETNSID). */
export const encodeLinkRef = (link: LinkRef, netnsId?: number): Uint8Array => {
  const writer =
    typeof link === 'number' ? header(link, 0, 0) : header(0, 0, 0).attributeText(IFLA.name, checkName(link));
  if (netnsId !== undefined) writer.attributeU32(IFLA.targetNetnsId, netnsId);
  return writer.bytes();
};

export const encodeLinkDump = (filter: { readonly stats?: boolean; readonly master?: number }): Uint8Array => {
  const writer = header(0, 0, 0);
  if (filter.master !== undefined) writer.attributeU32(IFLA.master, filter.master);
  return writer.attributeU32(IFLA.extMask, filter.stats ? 0 : SKIP_STATS).bytes();
};

/** struct rtnl_link_stats64: u64 each, these first. Counters beyond 2^53 lose their last digits. */
const readStats = (attribute: Attribute): LinkStats => {
  const { bytes } = attribute;
  if (bytes.length < 64) throw new NetlinkDecodeError(`IFLA_STATS64 has ${bytes.length} bytes: at least 64 are needed`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const counter = (index: number): number => Number(view.getBigUint64(index * 8, true));
  return {
    rxPackets: counter(0),
    txPackets: counter(1),
    rxBytes: counter(2),
    txBytes: counter(3),
    rxErrors: counter(4),
    txErrors: counter(5),
    rxDropped: counter(6),
    txDropped: counter(7),
  };
};

/** One RTM_NEWLINK or RTM_DELLINK. @throws NetlinkDecodeError */
export const decodeLink = (body: Uint8Array): Link => {
  if (body.length < IFINFOMSG_BYTES) {
    throw new NetlinkDecodeError(`link message of ${body.length} bytes: struct ifinfomsg alone has ${IFINFOMSG_BYTES}`);
  }
  const view = new DataView(body.buffer, body.byteOffset, body.length);
  const attributes = readAttributes(body.subarray(IFINFOMSG_BYTES));
  const flags = view.getUint32(8, true);
  const mac = attributes.get(IFLA.address)?.bytes;
  const kindInfo = attributes.get(IFLA.linkInfo);
  const kind = kindInfo && readLinkKind(kindInfo.nested());
  const [master, alias, parent] = [attributes.get(IFLA.master), attributes.get(IFLA.alias), attributes.get(IFLA.link)];
  const stats = attributes.get(IFLA.stats64);
  const parentNetns = attributes.get(IFLA.linkNetnsId);
  return {
    index: view.getInt32(4, true),
    name: attributes.get(IFLA.name)?.text ?? '',
    ...(kind && { kind }),
    hardwareType: view.getUint16(2, true),
    flags,
    up: (flags & IFF.up) !== 0,
    arp: (flags & IFF.noarp) === 0,
    carrier: (flags & IFF.lowerUp) !== 0,
    operState: OPER_STATES[attributes.get(IFLA.operState)?.u8 ?? 0] ?? 'unknown',
    mtu: attributes.get(IFLA.mtu)?.u32 ?? 0,
    txQueuePackets: attributes.get(IFLA.txQueueLength)?.u32 ?? 0,
    ...(mac && mac.length > 0 && { mac: macText(mac) }),
    ...(master && { master: master.u32 }),
    ...(alias && { alias: alias.text }),
    group: attributes.get(IFLA.group)?.u32 ?? 0,
    ...(parent && { parent: parent.u32 }),
    ...(parentNetns && { parentNetnsId: parentNetns.u32 | 0 }), // signed: -1 is none
    ...(stats && { stats: readStats(stats) }),
  };
};
