import {
  type Address,
  addressToBytes,
  type Family,
  formatAddress,
  hostPrefix,
  lastAddress,
  macBytes,
  parseAddress,
  parsePrefix,
  type Prefix,
} from '@unbounded/ip';

import type { AddressType, InterfaceType, PairType, SetSpec } from './table.ts';
import { SET_CONCATENATION, SET_DYNAMIC, SET_INTERVAL, SET_TIMEOUT } from './wire.codec.ts';

/** nft's numbers of data types (they are only for showing) and the bytes of a key. */
const SINGLE_TYPES = {
  ipv4: { type: 7, length: 4 },
  ipv6: { type: 8, length: 16 },
  port: { type: 13, length: 2 },
  mark: { type: 19, length: 4 },
  ifname: { type: 41, length: 16 },
  iif: { type: 20, length: 4 },
  ether: { type: 9, length: 6 },
} as const;
const TYPE_BITS = 6; // of each part in the number of a concatenated type

export interface SetLayout {
  readonly type: number;
  /** Bytes of a key. */
  readonly length: number;
  readonly flags: number;
  /** Bytes of each field of a concatenation; empty: it is none. */
  readonly fields: readonly number[];
}

const isInterface = (type: SetSpec['type']): type is InterfaceType => type.startsWith('iif');
const isPair = (type: SetSpec['type']): type is PairType => type.includes(' . ') && !isInterface(type);
const isAddress = (type: SetSpec['type']): type is AddressType => type === 'ipv4' || type === 'ipv6';
const partsOf = (type: PairType): [AddressType, AddressType] => type.split(' . ') as [AddressType, AddressType];

type Part = keyof typeof SINGLE_TYPES;
const interfaceParts = (type: InterfaceType): Part[] => type.split(' . ') as Part[];
/** Each part of a key fills whole words. */
const wordBytes = (length: number): number => Math.ceil(length / 4) * 4;

/** Without intervals the kernel need not know the fields: it compares the whole key. */
const interfaceLayout = (type: InterfaceType): SetLayout => {
  const parts = interfaceParts(type).map((part) => SINGLE_TYPES[part]);
  return {
    type: parts.reduce((sum, part) => (sum << TYPE_BITS) | part.type, 0),
    length: parts.reduce((sum, { length }) => sum + wordBytes(length), 0),
    flags: 0,
    fields: [],
  };
};

/** Sets of addresses hold intervals, unless they say otherwise. */
export const layoutOf = ({ name, type, dynamic, timed, single: isSingle }: Omit<SetSpec, 'elements'>): SetLayout => {
  if (isInterface(type)) {
    const layout = interfaceLayout(type);
    return { ...layout, flags: dynamic ? SET_TIMEOUT | SET_DYNAMIC : timed ? SET_TIMEOUT : 0 };
  }
  if (!isPair(type)) {
    const hasIntervals = isAddress(type) && !isSingle;
    return { ...SINGLE_TYPES[type], flags: timed ? SET_TIMEOUT : hasIntervals ? SET_INTERVAL : 0, fields: [] };
  }
  if (timed) throw new RangeError(`set ${name} of type "${type}" must not be timed: pairs are intervals`);
  const [first, second] = partsOf(type).map((part) => SINGLE_TYPES[part]) as [SingleType, SingleType];
  const own = { type: (first.type << TYPE_BITS) | second.type, length: first.length + second.length };
  if (isSingle) return { ...own, flags: 0, fields: [] };
  return { ...own, flags: SET_INTERVAL | SET_CONCATENATION, fields: [first.length, second.length] };
};
type SingleType = (typeof SINGLE_TYPES)[AddressType];

export interface Element {
  readonly key: Uint8Array;
  /** The first key behind an interval. */
  readonly isEnd: boolean;
  /** Of concatenations: the last key of an interval. */
  readonly lastKey?: Uint8Array;
  /** Of a set whose elements count; only read. */
  readonly packets?: number;
}

const toPrefix = (text: string, family: Family): Prefix => {
  const prefix = text.includes('/') ? parsePrefix(text) : hostPrefix(parseAddress(text));
  if (prefix.family !== family) throw new RangeError(`set element ${text} must be IPv${family}`);
  return prefix;
};

const toAddress = (text: string, family: Family): Address => {
  const address = parseAddress(text);
  if (address.family !== family) throw new RangeError(`set element ${text} must be IPv${family}`);
  return address;
};

interface Range {
  readonly first: bigint;
  /** Inclusive. */
  readonly last: bigint;
}

/** In order, with what touches or overlaps as one: the kernel refuses intervals that overlap. */
const merged = (prefixes: readonly Prefix[]): Range[] => {
  const ranges = prefixes.map((prefix) => ({ first: prefix.address, last: lastAddress(prefix).value }));
  ranges.sort((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0));
  const out: { first: bigint; last: bigint }[] = [];
  for (const range of ranges) {
    const open = out.at(-1);
    if (!open || range.first > open.last + 1n) out.push({ ...range });
    else if (range.last > open.last) open.last = range.last;
  }
  return out;
};

/** An interval is its first key, and the key behind its last: none behind the last address of all. */
const intervals = (texts: readonly string[], family: Family): Element[] => {
  const bits = family === 4 ? 32n : 128n;
  const key = (value: bigint): Uint8Array => addressToBytes({ family, value });
  return merged(texts.map((text) => toPrefix(text, family))).flatMap(({ first, last }): Element[] => {
    const start = { key: key(first), isEnd: false };
    return last + 1n === 1n << bits ? [start] : [start, { key: key(last + 1n), isEnd: true }];
  });
};

const familyOf = (type: AddressType): Family => (type === 'ipv4' ? 4 : 6);

/** A pair of addresses. */
const pairKey = (text: string, type: PairType): Uint8Array => {
  const [parts, texts] = [partsOf(type), text.split(' . ')];
  if (texts.length !== parts.length)
    throw new RangeError(`set element "${text}" must be two addresses: "192.0.2.1 . 198.51.100.1"`);
  return Uint8Array.from(parts.flatMap((part, index) => [...partBytes(part, texts[index]!)]));
};

/** A pair's interval has the address in both of its keys, and the first and last address of the prefix. */
const pairs = (texts: readonly string[], type: PairType): Element[] => {
  const [first, second] = partsOf(type);
  const prefixes = new Map<string, Prefix[]>();
  for (const text of texts) {
    const [address = '', prefix, ...more] = text.split(' . ');
    if (prefix === undefined || more.length > 0 || address.includes('/'))
      throw new RangeError(`set element "${text}" must be an address and a prefix: "192.0.2.1 . 10.0.0.0/8"`);
    const key = formatAddress(toAddress(address, familyOf(first)));
    const own = prefixes.get(key) ?? [];
    own.push(toPrefix(prefix, familyOf(second)));
    prefixes.set(key, own);
  }
  return [...prefixes].flatMap(([address, own]) => {
    const begin = addressToBytes(parseAddress(address));
    const key = (value: bigint): Uint8Array =>
      Uint8Array.of(...begin, ...addressToBytes({ family: familyOf(second), value }));
    return merged(own).map(({ first: from, last }) => ({ key: key(from), isEnd: false, lastKey: key(last) }));
  });
};

const number = (text: string, field: string, max: number): number => {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0 || value > max)
    throw new RangeError(`${field} "${text}" must be an integer within 0..${max}`);
  return value;
};

/** A name as the kernel compares it: 16 bytes, the rest zero. */
export const nameKey = (name: string): Uint8Array => {
  const bytes = new Uint8Array(16);
  if (new TextEncoder().encodeInto(name, bytes).read !== name.length || bytes[15] !== 0) {
    throw new RangeError(`interface name "${name}" must have at most 15 bytes`);
  }
  return bytes;
};

const single = (type: 'port' | 'mark' | 'ifname', text: string): Uint8Array => {
  if (type === 'ifname') return nameKey(text);
  const bytes = new Uint8Array(type === 'port' ? 2 : 4);
  const view = new DataView(bytes.buffer);
  if (type === 'port') view.setUint16(0, number(text, 'port', 0xffff), false);
  else view.setUint32(0, number(text, 'mark', 0xffff_ffff), true); // marks are compared in host order
  return bytes;
};

const partBytes = (part: Part, text: string): Uint8Array => {
  if (part === 'ether') return macBytes(text);
  if (part === 'ipv4' || part === 'ipv6') return addressToBytes(toAddress(text, familyOf(part)));
  if (part === 'iif') {
    const bytes = new Uint8Array(4);
    new DataView(bytes.buffer).setUint32(0, number(text, 'interface index', 0x7fff_ffff), true); // host order
    return bytes;
  }
  return single(part, text);
};

const interfaceKey = (type: InterfaceType, text: string): Uint8Array => {
  const [parts, texts] = [interfaceParts(type), text.split(' . ')];
  if (texts.length !== parts.length) throw new RangeError(`set element "${text}" must be of the form "${type}"`);
  const key = new Uint8Array(interfaceLayout(type).length);
  let at = 0;
  parts.forEach((part, index) => {
    key.set(partBytes(part, texts[index]!), at);
    at += wordBytes(SINGLE_TYPES[part].length);
  });
  return key;
};

/** The elements of a set as the kernel keeps them. @throws RangeError, AddressSyntaxError */
export const elementsOf = ({
  type,
  elements,
  timed,
  single: isSingle,
}: Omit<SetSpec, 'name' | 'dynamic'>): Element[] => {
  const keys = (keyOf: (text: string) => Uint8Array): Element[] =>
    [...new Set(elements)].map((text) => ({ key: keyOf(text), isEnd: false }));
  if (isSingle && isPair(type)) return keys((text) => pairKey(text, type));
  if ((timed || isSingle) && isAddress(type)) return keys((text) => partBytes(type, text));
  if (type === 'ipv4') return intervals(elements, 4);
  if (type === 'ipv6') return intervals(elements, 6);
  if (isInterface(type)) return keys((text) => interfaceKey(type, text));
  if (isPair(type)) return pairs(elements, type);
  return keys((text) => single(type, text));
};
