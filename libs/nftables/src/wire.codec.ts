import { MessageWriter } from '@unbounded/netlink';

import type { TableFamily } from './table.ts';

/** Message framing of nf_tables over nfnetlink (linux/netfilter/nfnetlink.h, nf_tables.h). Numbers are big-endian. */

export const SUBSYSTEM = 10; // NFNL_SUBSYS_NFTABLES

/** NFT_MSG_* with the subsystem in the upper byte. */
export const MESSAGE = {
  newTable: 0xa00,
  getTable: 0xa01,
  deleteTable: 0xa02,
  newChain: 0xa03,
  getChain: 0xa04,
  deleteChain: 0xa05,
  newRule: 0xa06,
  getRule: 0xa07,
  deleteRule: 0xa08,
  newSet: 0xa09,
  getSet: 0xa0a,
  deleteSet: 0xa0b,
  newElement: 0xa0c,
  getElement: 0xa0d,
  deleteElement: 0xa0e,
  newGeneration: 0xa0f,
  trace: 0xa11,
  newObject: 0xa12,
  getObject: 0xa13,
  deleteObject: 0xa14,
  /** These two belong to nfnetlink itself. */
  batchBegin: 0x10,
  batchEnd: 0x11,
} as const;

/** NFPROTO_*. */
export const FAMILY: Readonly<Record<TableFamily, number>> = { inet: 1, ip: 2, arp: 3, netdev: 5, bridge: 7, ip6: 10 };

export const TABLE = { name: 1, flags: 2 } as const;
/** NFT_TABLE_F_DORMANT: the table's chains are at no hook. */
export const TABLE_DORMANT = 1;
export const CHAIN = { table: 1, name: 3, hook: 4, policy: 5, type: 7 } as const;
export const HOOK = { number: 1, priority: 2, devices: 4 } as const;
export const DEVICE_NAME = 1;
export const RULE = { table: 1, chain: 2, handle: 3, expressions: 4, userData: 7 } as const;
export const SET = {
  table: 1,
  name: 2,
  flags: 3,
  keyType: 4,
  keyLength: 5,
  description: 9,
  id: 10,
  timeout: 11,
  userData: 13,
} as const;
export const SET_ANONYMOUS = 1;
export const SET_INTERVAL = 4;
export const SET_TIMEOUT = 16;
export const SET_DYNAMIC = 32; // NFT_SET_EVAL
export const SET_CONCATENATION = 128;
/** NFTA_SET_DESC_CONCAT: a list of fields, each with its length (NFTA_SET_FIELD_LEN). */
export const SET_DESCRIPTION = { size: 1, fields: 2 } as const;
export const SET_FIELD = { length: 1 } as const;
export const ELEMENT_LIST = { table: 1, set: 2, elements: 3 } as const;
export const ELEMENT = { key: 1, flags: 3, timeout: 4, expression: 7, keyEnd: 10, expressions: 11 } as const;
/** Of a counter, as a rule's expression, an element's or an object's data. */
export const COUNTER = { bytes: 1, packets: 2 } as const;
export const INTERVAL_END = 1;
export const OBJECT = { table: 1, name: 2, type: 3, data: 4 } as const;
/** NFT_OBJECT_COUNTER */
export const COUNTER_OBJECT = 1;
/** Elements of lists: NFTA_LIST_ELEM. */
export const LIST_ENTRY = 1;
export const DATA = { value: 1, verdict: 2 } as const;
export const VERDICT = { code: 1, chain: 2 } as const;
export const EXPRESSION = { name: 1, data: 2 } as const;

/** struct nfgenmsg: u8 family, u8 version 0, u16 resource id in network order. */
export const startBody = (family: number, resource = 0): MessageWriter =>
  new MessageWriter(256).u8(family).u8(0).be16(resource);

/** Begins and ends a transaction. */
export const batchBody = (): Uint8Array => startBody(0, SUBSYSTEM).bytes();

export const HEADER_BYTES = 4;

/** Comments travel as user data: u8 type 0, u8 length, text with NUL (libnftnl udata.h). */
const COMMENT = 0;
const LONGEST_COMMENT = 127;

export const encodeComment = (text: string): Uint8Array => {
  const bytes = new TextEncoder().encode(`${text}\0`);
  if (bytes.length > LONGEST_COMMENT + 1)
    throw new RangeError(`comment "${text}" has ${bytes.length - 1} bytes: at most ${LONGEST_COMMENT} fit`);
  return Uint8Array.of(COMMENT, bytes.length, ...bytes);
};

/** For nft's own display: keys that are in host order (NFTNL_UDATA_SET_KEYBYTEORDER: type 0, length 4, u32 1). */
export const HOST_ORDER_KEYS = Uint8Array.of(0, 4, 1, 0, 0, 0);

/** undefined where there is none. */
export const decodeComment = (bytes: Uint8Array): string | undefined => {
  for (let at = 0; at + 2 <= bytes.length;) {
    const length = bytes[at + 1] ?? 0;
    if (bytes[at] === COMMENT)
      return new TextDecoder().decode(bytes.subarray(at + 2, at + 2 + length)).replace(/\0.*$/s, '');
    at += 2 + length;
  }
  return undefined;
};
