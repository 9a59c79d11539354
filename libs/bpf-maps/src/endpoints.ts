import {
  addressFromBytes,
  addressToBytes,
  formatAddress,
  formatPrefix,
  parseAddress,
  parsePrefix,
  prefixOf,
} from '@unbounded/ip';
import { LEADING_BYTES } from '#shape';
import type { Codec } from './codec.ts';
import { ipv4PrefixLength, ipv4Text, ipv4Value } from './ipv4-text.ts';

/** Layouts of bpf/include/endpoints.h; little-endian except for addresses that stand as on the wire. */

/** How the packets to a next hop are carried (`protocol` field; the program itself goes by ifindex and flags). */
export const PROTOCOLS = { geneve: 1, vxlan: 2, ipip: 3, wireguard: 4, none: 5 } as const;
export type Protocol = keyof typeof PROTOCOLS;

/** Bits of the `flags` field. The upper 16 bits are the index of a next-hop group where `group` is set. */
export const FLAGS = {
  setKey: 0x01,
  healthy: 0x02,
  ipv6Underlay: 0x04,
  group: 0x08,
  mac: 0x10,
  ownSource: 0x20,
  echo: 0x40,
} as const;
const GROUP_SHIFT = 16;
const LARGEST_GROUP_INDEX = 0xffff;

/** Where packets go. */
export interface NextHop {
  /** Underlay address of the peer; absent for WireGuard, which finds its peer by allowed addresses. */
  readonly remote?: string;
  readonly vni: number;
  readonly ifindex: number;
  readonly protocol: Protocol;
  /** Write tunnel metadata: the device is a flow-based tunnel. */
  readonly setKey: boolean;
  readonly healthy: boolean;
  /** Inner destination MAC, in the form of {@link innerMac}; absent: that of `remote`. Not with a group. */
  readonly mac?: string;
  /** The outer source is the node's own address of `unbounded_locals`. */
  readonly ownSource?: boolean;
  /** What comes from the echo address of the node goes back to it from there. */
  readonly echo?: boolean;
}

/** What stands in an endpoint map: a next hop, and possibly the group that decides instead. */
export interface Endpoint extends NextHop {
  readonly group?: number;
}

const LITTLE = true;
const LARGEST_U32 = 0xffff_ffff;

const checkU32 = (field: string, value: number): number => {
  if (Number.isInteger(value) && value >= 0 && value <= LARGEST_U32) return value;
  throw new RangeError(`${field} is ${value}: must be an integer from 0 to ${LARGEST_U32}`);
};

const PROTOCOL_NAMES = new Map<number, Protocol>(
  Object.entries(PROTOCOLS).map(([name, code]) => [code, name as Protocol]),
);
const protocolOf = (code: number): Protocol => PROTOCOL_NAMES.get(code) ?? 'none';

const HALF = 16;
const LOW_HALF = 0xffff;
const INNER_MAC = /^02((?::[0-9a-f]{2}){4}):ff$/;

/** The four middle bytes of an inner MAC, of which the upper half is in the flags and the lower one with the protocol. */
const macWord = (mac: string | undefined): number => {
  if (mac === undefined) return 0;
  const middle = INNER_MAC.exec(mac)?.[1];
  if (middle === undefined) throw new RangeError(`mac is ${mac}: it must be like 02:c0:00:02:07:ff`);
  return Number.parseInt(middle.replaceAll(':', ''), 16);
};

const macText = (word: number): string => {
  const bytes = [24, 16, 8, 0].map((shift) => ((word >>> shift) & 0xff).toString(16).padStart(2, '0'));
  return ['02', ...bytes, 'ff'].join(':');
};

const flagsOf = (hop: Endpoint, isIpv6Underlay: boolean): number => {
  const { group } = hop;
  if (group !== undefined && (!Number.isInteger(group) || group < 0 || group > LARGEST_GROUP_INDEX)) {
    throw new RangeError(`group is ${group}: must be an integer from 0 to ${LARGEST_GROUP_INDEX}`);
  }
  if (group !== undefined && hop.mac !== undefined)
    throw new RangeError('mac is set beside group: the members of the group have MACs of their own');
  const bits =
    (hop.mac === undefined ? 0 : FLAGS.mac) |
    (hop.setKey ? FLAGS.setKey : 0) |
    (hop.healthy ? FLAGS.healthy : 0) |
    (isIpv6Underlay ? FLAGS.ipv6Underlay : 0) |
    (hop.ownSource ? FLAGS.ownSource : 0) |
    (hop.echo ? FLAGS.echo : 0) |
    (group === undefined ? 0 : FLAGS.group);
  return (bits | ((group ?? macWord(hop.mac) >>> HALF) << GROUP_SHIFT)) >>> 0;
};

/** The part that all records share: vni, ifindex, flags, protocol, 16 bytes. */
const TAIL = 16;
const writeTail = (
  hop: Endpoint,
  view: DataView,
  at: number,
  isIpv6Underlay = hop.remote?.includes(':') ?? false,
): void => {
  const vni = checkU32('vni', hop.vni); // all checks before the first byte
  const ifindex = checkU32('ifindex', hop.ifindex);
  const flags = flagsOf(hop, isIpv6Underlay);
  view.setUint32(at, vni, LITTLE);
  view.setUint32(at + 4, ifindex, LITTLE);
  view.setUint32(at + 8, flags, LITTLE);
  view.setUint32(at + 12, (PROTOCOLS[hop.protocol] | ((macWord(hop.mac) & LOW_HALF) << HALF)) >>> 0, LITTLE);
};

const readTail = (view: DataView, at: number): Omit<Endpoint, 'remote'> & { readonly isIpv6: boolean } => {
  const flags = view.getUint32(at + 8, LITTLE);
  const protocol = view.getUint32(at + 12, LITTLE);
  return {
    vni: view.getUint32(at, LITTLE),
    ifindex: view.getUint32(at + 4, LITTLE),
    protocol: protocolOf(protocol & LOW_HALF),
    setKey: (flags & FLAGS.setKey) !== 0,
    healthy: (flags & FLAGS.healthy) !== 0,
    isIpv6: (flags & FLAGS.ipv6Underlay) !== 0,
    ...(flags & FLAGS.ownSource ? { ownSource: true } : {}),
    ...(flags & FLAGS.echo ? { echo: true } : {}),
    ...(flags & FLAGS.group ? { group: flags >>> GROUP_SHIFT } : {}),
    ...(flags & FLAGS.mac && !(flags & FLAGS.group)
      ? { mac: macText(((flags & ~LOW_HALF) | (protocol >>> HALF)) >>> 0) }
      : {}),
  };
};

/** An IPv4 remote is one word in host order, 0 for none; an IPv6 one 16 bytes as on the wire. */
const REMOTE = 16;
const remoteBytes = (remote: string | undefined): Uint8Array => {
  const bytes = new Uint8Array(REMOTE);
  if (remote === undefined) return bytes;
  const address = parseAddress(remote);
  if (address.family === 6) bytes.set(addressToBytes(address));
  else new DataView(bytes.buffer).setUint32(0, Number(address.value), LITTLE);
  return bytes;
};

const readRemote = (view: DataView, at: number, isIpv6: boolean): { remote?: string } => {
  if (isIpv6)
    return { remote: formatAddress(addressFromBytes(new Uint8Array(view.buffer, view.byteOffset + at, REMOTE))) };
  const value = view.getUint32(at, LITTLE);
  return value === 0 ? {} : { remote: ipv4Text(value) };
};

const setBytes = (view: DataView, at: number, bytes: Uint8Array): void => {
  for (let index = 0; index < bytes.length; index++) view.setUint8(at + index, bytes[index] ?? 0);
};

const remoteWord = (remote: string | undefined): number => {
  if (remote === undefined) return 0;
  const plain = ipv4Value(remote, 0, remote.length);
  if (plain >= 0) return plain;
  if (!remote.includes(':')) return Number(parseAddress(remote).value); // its error says what is wrong
  throw new RangeError(
    `remote is ${remote}: an IPv4 record holds an IPv4 underlay address; use a group for an IPv6 one`,
  );
};

/** struct endpoint_v4, 20 bytes. Its next hop is on an IPv4 underlay. */
export const endpointV4: Codec<Endpoint> = {
  size: LEADING_BYTES.endpointV4 + 4 + TAIL,
  write(value, view, offset) {
    const [at, word] = [offset + LEADING_BYTES.endpointV4, remoteWord(value.remote)];
    writeTail(value, view, at + 4, false);
    view.setUint32(at, word, LITTLE);
  },
  read(view, offset) {
    const at = offset + LEADING_BYTES.endpointV4;
    const { isIpv6: _, ...tail } = readTail(view, at + 4);
    return { ...tail, ...readRemote(view, at, false) };
  },
};

/** struct endpoint_v6, 32 bytes. */
export const endpointV6: Codec<Endpoint> = {
  size: REMOTE + TAIL,
  write(value, view, offset) {
    const remote = remoteBytes(value.remote);
    writeTail(value, view, offset + REMOTE);
    setBytes(view, offset, remote);
  },
  read(view, offset) {
    const { isIpv6, ...tail } = readTail(view, offset + REMOTE);
    return { ...tail, ...readRemote(view, offset, isIpv6) };
  },
};

const maskOf = (length: number): number => (length === 0 ? 0 : -1 << (32 - length));

/** The usual case, quickly; false for text that the general parser must judge. */
const writeV4Key = (text: string, view: DataView, offset: number): boolean => {
  const slash = text.indexOf('/');
  const value = slash > 0 ? ipv4Value(text, 0, slash) : -1;
  const length = ipv4PrefixLength(text, slash + 1);
  if (value < 0 || length < 0 || (value & ~maskOf(length)) !== 0) return false;
  view.setUint32(offset, length, LITTLE);
  view.setUint32(offset + 4, value, false);
  return true;
};

/** Keys of the tries: prefix length, then the address as on the wire. As text, a canonical prefix. */
const lpmKey = (family: 4 | 6): Codec<string> => {
  const bytes = family === 4 ? 4 : 16;
  return {
    size: 4 + bytes,
    write(text, view, offset) {
      if (family === 4 && writeV4Key(text, view, offset)) return;
      const prefix = parsePrefix(text);
      if (prefix.family !== family)
        throw new RangeError(`"${text}" is IPv${prefix.family}: this map holds IPv${family} prefixes`);
      setBytes(view, offset + 4, addressToBytes({ family, value: prefix.address }));
      view.setUint32(offset, prefix.length, LITTLE);
    },
    read(view, offset) {
      const length = Math.min(view.getUint32(offset, LITTLE), bytes * 8);
      if (family === 4) return `${ipv4Text(view.getUint32(offset + 4) & maskOf(length))}/${length}`;
      return formatPrefix(
        prefixOf(addressFromBytes(new Uint8Array(view.buffer, view.byteOffset + offset + 4, bytes)), length),
      );
    },
  };
};
export const lpmKeyV4: Codec<string> = lpmKey(4);
export const lpmKeyV6: Codec<string> = lpmKey(6);

const GOLDEN_RATIO = 0x9e3779b1;

/** Four bytes for sixteen: addresses that differ in their upper half only differ here too. */
const hashWords = (bytes: Uint8Array): Uint8Array => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let word = 0;
  for (let offset = 0; offset < bytes.length; offset += 4) {
    word = Math.imul(word ^ view.getUint32(offset), GOLDEN_RATIO);
    word ^= word >>> 15;
  }
  const hash = new DataView(new ArrayBuffer(4));
  hash.setUint32(0, word >>> 0);
  return new Uint8Array(hash.buffer);
};

/**
 * The destination MAC inside a tunnel: 02:<four bytes of the remote underlay address>:ff, an IPv4 address itself and of an
 * IPv6 one a hash, as `inner_mac` of bpf/include/nexthop.h has it.
 */
export const innerMac = (remote: string): string => {
  const bytes = addressToBytes(parseAddress(remote));
  const four = bytes.length === 4 ? bytes : hashWords(bytes);
  return [0x02, ...four, 0xff].map((byte) => byte.toString(16).padStart(2, '0')).join(':');
};

export { remoteBytes, readRemote, setBytes, readTail, writeTail, checkU32, REMOTE, TAIL };
