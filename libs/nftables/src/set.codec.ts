import {
  addressToBytes,
  type Family,
  lastAddress,
  parseAddress,
  parsePrefix,
  type Prefix,
  hostPrefix,
} from '@unbounded/ip';

import type { SetSpec } from './table.ts';

/** nft's numbers of data types (they are only for showing) and the bytes of a key. */
export const SET_TYPES: Readonly<Record<SetSpec['type'], { readonly type: number; readonly length: number }>> = {
  ipv4: { type: 7, length: 4 },
  ipv6: { type: 8, length: 16 },
  port: { type: 13, length: 2 },
  mark: { type: 19, length: 4 },
  ifname: { type: 41, length: 16 },
};

/** Sets of addresses hold intervals. */
export const isInterval = (type: SetSpec['type']): boolean => type === 'ipv4' || type === 'ipv6';

export interface Element {
  readonly key: Uint8Array;
  /** The first key behind an interval. */
  readonly isEnd: boolean;
}

const toPrefix = (text: string, family: Family): Prefix => {
  const prefix = text.includes('/') ? parsePrefix(text) : hostPrefix(parseAddress(text));
  if (prefix.family !== family) throw new RangeError(`set element ${text} must be IPv${family}`);
  return prefix;
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

/** The elements of a set as the kernel keeps them. @throws RangeError, AddressSyntaxError */
export const elementsOf = ({ type, elements }: Pick<SetSpec, 'type' | 'elements'>): Element[] => {
  if (type === 'ipv4') return intervals(elements, 4);
  if (type === 'ipv6') return intervals(elements, 6);
  return [...new Set(elements)].map((text) => ({ key: single(type, text), isEnd: false }));
};
