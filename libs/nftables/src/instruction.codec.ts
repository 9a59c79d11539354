import { MessageWriter } from '@unbounded/netlink';

import type { MetaKey, PayloadField, RawField } from './table.ts';
import { COUNTER_OBJECT, DATA, EXPRESSION, LIST_ENTRY, VERDICT } from './wire.codec.ts';

/** One instruction of the kernel's little machine: its name, and its attributes. */
export interface Instruction {
  readonly name: string;
  readonly data: Uint8Array;
}

/** NFTA_* of linux/netfilter/nf_tables.h, by instruction. */
const META = { destination: 1, key: 2, source: 3 } as const;
const PAYLOAD = {
  destination: 1,
  base: 2,
  offset: 3,
  length: 4,
  source: 5,
  checksumType: 6,
  checksumOffset: 7,
  checksumFlags: 8,
} as const;
/** Of the IPv4 header, NFT_PAYLOAD_CSUM_INET; IPv6 has none. */
const CHECKSUM = { ip: { type: 1, offset: 10 }, ip6: { type: 0, offset: 0 } } as const;
/** NFT_PAYLOAD_L4CSUM_PSEUDOHDR: the checksum of TCP and UDP, which covers the addresses, follows. */
const PSEUDO_HEADER = 1;
const NFTRACE = 12;
const CMP = { source: 1, op: 2, data: 3 } as const;
const BITWISE = { source: 1, destination: 2, length: 3, mask: 4, xor: 5 } as const;
export const LOOKUP = { set: 1, source: 2, flags: 5 } as const;
const IMMEDIATE = { destination: 1, data: 2 } as const;
export const CT = { destination: 1, key: 2, direction: 3, source: 4 } as const;
const FIB = { destination: 1, result: 2, flags: 3 } as const;
const RT = { destination: 1, key: 2 } as const;
const BYTEORDER = { source: 1, destination: 2, op: 3, length: 4, size: 5 } as const;
const EXTHDR = { type: 2, offset: 3, length: 4, op: 6, source: 7 } as const;
export const NAT = { type: 1, family: 2, address: 3, lastAddress: 4, port: 5, lastPort: 6, flags: 7 } as const;
export const NAT_FLAG = { address: 1, port: 2 } as const; // NF_NAT_RANGE_MAP_IPS, NF_NAT_RANGE_PROTO_SPECIFIED
export const MASQUERADE_FLAGS = 1;

/** NFT_REG_VERDICT, the 16-byte data registers NFT_REG_1, NFT_REG_2, and the first of the 4-byte ones that they consist of. */
export const REGISTER = { verdict: 0, first: 1, second: 2, words: 8 } as const;
export const META_KEYS: Readonly<Record<MetaKey | 'protocol', { readonly code: number; readonly length: number }>> = {
  protocol: { code: 1, length: 2 },
  mark: { code: 3, length: 4 },
  iif: { code: 4, length: 4 },
  oif: { code: 5, length: 4 },
  iifname: { code: 6, length: 16 },
  oifname: { code: 7, length: 16 },
  nfproto: { code: 15, length: 1 },
  l4proto: { code: 16, length: 1 },
};
const [LINK, NETWORK, TRANSPORT] = [0, 1, 2];
const BASES = { link: LINK, network: NETWORK, transport: TRANSPORT } as const;
export const FIELDS: Readonly<
  Record<
    PayloadField,
    { readonly base: number; readonly offset: number; readonly length: number; readonly family?: 'ip' | 'ip6' }
  >
> = {
  'ip.saddr': { base: NETWORK, offset: 12, length: 4, family: 'ip' },
  'ip.daddr': { base: NETWORK, offset: 16, length: 4, family: 'ip' },
  'ip.protocol': { base: NETWORK, offset: 9, length: 1, family: 'ip' },
  'ip6.saddr': { base: NETWORK, offset: 8, length: 16, family: 'ip6' },
  'ip6.daddr': { base: NETWORK, offset: 24, length: 16, family: 'ip6' },
  'ip6.length': { base: NETWORK, offset: 4, length: 2, family: 'ip6' },
  'ip6.nexthdr': { base: NETWORK, offset: 6, length: 1, family: 'ip6' },
  'icmpv6.type': { base: TRANSPORT, offset: 0, length: 1 },
  'ether.daddr': { base: LINK, offset: 0, length: 6 },
  'ether.saddr': { base: LINK, offset: 6, length: 6 },
  'ether.type': { base: LINK, offset: 12, length: 2 },
  'arp.operation': { base: NETWORK, offset: 6, length: 2 },
  'arp.sha': { base: NETWORK, offset: 8, length: 6 },
  'arp.spa': { base: NETWORK, offset: 14, length: 4 },
  'arp.tpa': { base: NETWORK, offset: 24, length: 4 },
  'tcp.flags': { base: TRANSPORT, offset: 13, length: 1 },
  'th.sport': { base: TRANSPORT, offset: 0, length: 2 },
  'th.dport': { base: TRANSPORT, offset: 2, length: 2 },
};
export const CT_KEYS = { state: 0, direction: 1, status: 2, mark: 3 } as const;
export const CT_ADDRESSES = { ip: { saddr: 19, daddr: 20 }, ip6: { saddr: 21, daddr: 22 } } as const;
export const CT_DIRECTIONS = { original: 0, reply: 1 } as const; // IP_CT_DIR_*
export const CT_TRANSLATED = { saddr: 1 << 4, daddr: 1 << 5 } as const; // IPS_SRC_NAT, IPS_DST_NAT
export const CT_STATES = { invalid: 1, established: 2, related: 4, new: 8, untracked: 64 } as const;
export const ADDRESS_TYPES = { unicast: 1, local: 2, broadcast: 3, multicast: 5 } as const; // RTN_*
export const FIB_FLAG = { saddr: 1, daddr: 2, iif: 8, present: 32 } as const;
export const FIB_DEVICE = 1;
export const FIB_DEVICE_NAME = 2;
export const FIB_ADDRESS_TYPE = 3;
export const VERDICTS = { drop: 0, accept: 1, continue: -1, jump: -3, goto: -4, return: -5 } as const;
export const FULLY_RANDOM = 16; // NF_NAT_RANGE_PROTO_RANDOM_FULLY
export const NFPROTO = { ip: 2, ip6: 10 } as const;
export const ETHERTYPE = { ip: 0x0800, ip6: 0x86dd } as const;
export const TCP = 6;
export const ICMPV6 = 58;
const LIMIT = { rate: 1, unit: 2, burst: 3, type: 4, flags: 5 } as const;
const LIMIT_OF_PACKETS = 0;
export const DYNSET = { set: 1, op: 3, key: 4, expression: 7 } as const;
export const DYNSET_UPDATE = 1;

export const instruction = (name: string, write: (writer: MessageWriter) => void = () => {}): Instruction => {
  const writer = new MessageWriter(64);
  write(writer);
  return { name, data: writer.bytes() };
};

const value = (writer: MessageWriter, type: number, bytes: Uint8Array): void => {
  writer.nest(type, () => writer.attribute(DATA.value, bytes));
};

export const loadMeta = (key: MetaKey | 'protocol'): Instruction =>
  instruction('meta', (w) =>
    w.attributeBe32(META.destination, REGISTER.first).attributeBe32(META.key, META_KEYS[key].code),
  );

/** The register that begins at a multiple of 4 bytes, by the number that the kernel tells back. */
export const registerAt = (bytes: number): number =>
  bytes % 16 === 0 ? REGISTER.first + bytes / 16 : REGISTER.words + bytes / 4;

/** The kernel's own limits: offsets of one byte, and what a register holds. */
const placeOf = (field: PayloadField | RawField) => {
  if (typeof field === 'string') return FIELDS[field];
  const { offsetBytes: offset, lengthBytes: length } = field;
  if (!Number.isInteger(offset) || offset < 0 || offset > 255)
    throw new RangeError(`raw field at offset ${offset}: it must be an integer within 0..255`);
  if (!Number.isInteger(length) || length < 1 || length > 16)
    throw new RangeError(`raw field of ${length} bytes: it must have 1..16`);
  return { base: BASES[field.base], offset, length };
};

export const fieldLength = (field: PayloadField | RawField): number => placeOf(field).length;

export const loadField = (field: PayloadField | RawField, register: number = REGISTER.first): Instruction => {
  const { base, offset, length } = placeOf(field);
  return instruction('payload', (w) =>
    w
      .attributeBe32(PAYLOAD.destination, register)
      .attributeBe32(PAYLOAD.base, base)
      .attributeBe32(PAYLOAD.offset, offset)
      .attributeBe32(PAYLOAD.length, length),
  );
};

export const compare = (op: '==' | '!=', bytes: Uint8Array): Instruction =>
  instruction('cmp', (w) => {
    w.attributeBe32(CMP.source, REGISTER.first).attributeBe32(CMP.op, op === '==' ? 0 : 1);
    value(w, CMP.data, bytes);
  });

const OBJECT_REFERENCE = { type: 1, name: 2 } as const;

/** A named counter of the table. */
export const useCounter = (name: string): Instruction =>
  instruction('objref', (w) =>
    w.attributeBe32(OBJECT_REFERENCE.type, COUNTER_OBJECT).attributeText(OBJECT_REFERENCE.name, name),
  );

/** register = (register & mask) ^ xor */
export const bitwise = (mask: Uint8Array, xor: Uint8Array): Instruction =>
  instruction('bitwise', (w) => {
    w.attributeBe32(BITWISE.source, REGISTER.first)
      .attributeBe32(BITWISE.destination, REGISTER.first)
      .attributeBe32(BITWISE.length, mask.length);
    value(w, BITWISE.mask, mask);
    value(w, BITWISE.xor, xor);
  });

export const immediate = (register: number, bytes: Uint8Array): Instruction =>
  instruction('immediate', (w) => {
    w.attributeBe32(IMMEDIATE.destination, register);
    value(w, IMMEDIATE.data, bytes);
  });

/** A token bucket of the rule. */
export const limit = ({ perSecond, burst }: { readonly perSecond: number; readonly burst: number }): Instruction =>
  instruction('limit', (w) =>
    w
      .attributeBe64(LIMIT.rate, BigInt(perSecond))
      .attributeBe64(LIMIT.unit, 1n)
      .attributeBe32(LIMIT.burst, burst)
      .attributeBe32(LIMIT.type, LIMIT_OF_PACKETS)
      .attributeBe32(LIMIT.flags, 0),
  );

export const verdict = (code: number, chain?: string): Instruction =>
  instruction('immediate', (w) => {
    w.attributeBe32(IMMEDIATE.destination, REGISTER.verdict).nest(IMMEDIATE.data, () =>
      w.nest(DATA.verdict, () => {
        w.attributeBe32(VERDICT.code, code);
        if (chain !== undefined) w.attributeText(VERDICT.chain, chain);
      }),
    );
  });

/** What the routes say of an address of the packet. */
export const loadFib = (result: number, flags: number): Instruction =>
  instruction('fib', (w) =>
    w.attributeBe32(FIB.destination, REGISTER.first).attributeBe32(FIB.result, result).attributeBe32(FIB.flags, flags),
  );

/** Writes an address of the header; attributes in the order in which the kernel shows them. */
export const storeAddress = (field: 'ip.daddr' | 'ip6.daddr'): Instruction => {
  const { base, offset, length } = placeOf(field);
  const checksum = CHECKSUM[field === 'ip.daddr' ? 'ip' : 'ip6'];
  return instruction('payload', (w) =>
    w
      .attributeBe32(PAYLOAD.source, REGISTER.first)
      .attributeBe32(PAYLOAD.base, base)
      .attributeBe32(PAYLOAD.offset, offset)
      .attributeBe32(PAYLOAD.length, length)
      .attributeBe32(PAYLOAD.checksumType, checksum.type)
      .attributeBe32(PAYLOAD.checksumOffset, checksum.offset)
      .attributeBe32(PAYLOAD.checksumFlags, PSEUDO_HEADER),
  );
};
export const storeTrace = (): Instruction =>
  instruction('meta', (w) => w.attributeBe32(META.key, NFTRACE).attributeBe32(META.source, REGISTER.first));
export const storeMark = (): Instruction =>
  instruction('meta', (w) => w.attributeBe32(META.key, META_KEYS.mark.code).attributeBe32(META.source, REGISTER.first));
export const loadCt = (key: keyof typeof CT_KEYS): Instruction =>
  instruction('ct', (w) => w.attributeBe32(CT.destination, REGISTER.first).attributeBe32(CT.key, CT_KEYS[key]));
export const storeCtMark = (): Instruction =>
  instruction('ct', (w) => w.attributeBe32(CT.key, CT_KEYS.mark).attributeBe32(CT.source, REGISTER.first));

const checked = (what: string, number: number, length: number): number => {
  if (Number.isInteger(number) && number >= 0 && number < 2 ** (8 * length)) return number;
  throw new RangeError(`${what} ${number} must be an integer of ${length} bytes`);
};

export const hostOrder = (what: string, number: number, length: number): Uint8Array => {
  checked(what, number, length);
  return Uint8Array.from({ length }, (_, index) => Math.floor(number / 2 ** (8 * index)) & 0xff);
};
export const networkOrder = (what: string, number: number, length: number): Uint8Array =>
  hostOrder(what, number, length).reverse();

/** Writes them as a list of expressions under the attribute. */
export const writeInstructions = (writer: MessageWriter, type: number, instructions: readonly Instruction[]): void => {
  writer.nest(type, () => {
    for (const { name, data } of instructions) {
      writer.nest(LIST_ENTRY, () =>
        writer.attributeText(EXPRESSION.name, name).nest(EXPRESSION.data, () => writer.raw(data)),
      );
    }
  });
};

/** The maximum segment size that the MTU of the packet's route leaves, in network order. */
export const loadRouteMss = (): readonly Instruction[] => {
  const [RT_TCPMSS, HTON] = [3, 1];
  return [
    instruction('rt', (w) => w.attributeBe32(RT.destination, REGISTER.first).attributeBe32(RT.key, RT_TCPMSS)),
    instruction('byteorder', (w) =>
      w
        .attributeBe32(BYTEORDER.source, REGISTER.first)
        .attributeBe32(BYTEORDER.destination, REGISTER.first)
        .attributeBe32(BYTEORDER.op, HTON)
        .attributeBe32(BYTEORDER.length, 2)
        .attributeBe32(BYTEORDER.size, 2),
    ),
  ];
};

/** 2 bytes at offset 2 of TCP option 2. */
export const storeMss = (): Instruction =>
  instruction('exthdr', (w) =>
    w
      .attributeBe32(EXTHDR.source, REGISTER.first)
      .attributeU8(EXTHDR.type, 2)
      .attributeBe32(EXTHDR.offset, 2)
      .attributeBe32(EXTHDR.length, 2)
      .attributeBe32(EXTHDR.op, 1),
  );
