import { NetlinkDecodeError } from './message.codec.ts';

/**
 * Attributes (`struct nlattr`): u16 length with these 4 bytes, u16 type (its upper two bits are flags), payload, padding
 * to 4 bytes.
 */
const NESTED = 0x8000;
const TYPE_MASK = 0x3fff;

const utf8 = new TextEncoder();
const text = new TextDecoder();

const align = (length: number): number => (length + 3) & ~3;

/** Small writers share a slab: making a buffer for each costs more than writing a route into it. Never used twice. */
const SLAB_BYTES = 64 << 10;
const LARGEST_SHARE = 1024;
let slab = new Uint8Array(0);
let slabView = new DataView(slab.buffer);
let slabUsed = 0;

/** Grows as it is written to. Numbers are in host order (little-endian) unless the name says `be`. */
export class MessageWriter {
  #bytes: Uint8Array;
  #view: DataView;
  /** Where this writer's room begins in #bytes, how far it is written, and where it ends. */
  #start = 0;
  #end = 0;
  #limit: number;

  constructor(capacity = 256) {
    if (capacity > LARGEST_SHARE) {
      this.#bytes = new Uint8Array(capacity);
      this.#view = new DataView(this.#bytes.buffer);
      this.#limit = capacity;
      return;
    }
    if (slabUsed + capacity > slab.length) {
      slab = new Uint8Array(SLAB_BYTES);
      slabView = new DataView(slab.buffer);
      slabUsed = 0;
    }
    this.#bytes = slab;
    this.#view = slabView;
    this.#start = slabUsed;
    this.#end = slabUsed;
    slabUsed += capacity;
    this.#limit = slabUsed;
  }

  get length(): number {
    return this.#end - this.#start;
  }

  /** What was written so far, as a view. */
  bytes(): Uint8Array {
    return this.#bytes.subarray(this.#start, this.#end);
  }

  #grow(needed: number): void {
    const written = this.bytes();
    this.#bytes = new Uint8Array(Math.max(needed, (this.#limit - this.#start) * 2));
    this.#bytes.set(written);
    this.#view = new DataView(this.#bytes.buffer);
    this.#start = 0;
    this.#end = written.length;
    this.#limit = this.#bytes.length;
  }

  /** Claims zeroed room and returns its place in #bytes. */
  #claim(size: number): number {
    if (this.#end + size > this.#limit) this.#grow(this.length + size);
    const at = this.#end;
    this.#end = at + size;
    return at;
  }

  u8(value: number): this {
    const at = this.#claim(1);
    this.#bytes[at] = value;
    return this;
  }

  u16(value: number): this {
    const at = this.#claim(2);
    this.#view.setUint16(at, value, true);
    return this;
  }

  be16(value: number): this {
    const at = this.#claim(2);
    this.#view.setUint16(at, value, false);
    return this;
  }

  u32(value: number): this {
    const at = this.#claim(4);
    this.#view.setUint32(at, value >>> 0, true);
    return this;
  }

  /** Zero bytes: reserved fields of the fixed headers. */
  zeros(count: number): this {
    this.#claim(count);
    return this;
  }

  raw(bytes: Uint8Array): this {
    const at = this.#claim(bytes.length);
    this.#bytes.set(bytes, at);
    return this;
  }

  #attribute(type: number, size: number): number {
    const at = this.#claim(align(4 + size));
    this.#view.setUint16(at, 4 + size, true);
    this.#view.setUint16(at + 2, type, true);
    return at + 4;
  }

  attribute(type: number, payload: Uint8Array): this {
    const at = this.#attribute(type, payload.length);
    this.#bytes.set(payload, at);
    return this;
  }

  /** An attribute that says something by being there. */
  flag(type: number): this {
    this.#attribute(type, 0);
    return this;
  }

  attributeU8(type: number, value: number): this {
    const at = this.#attribute(type, 1);
    this.#bytes[at] = value;
    return this;
  }

  attributeU16(type: number, value: number): this {
    const at = this.#attribute(type, 2);
    this.#view.setUint16(at, value, true);
    return this;
  }

  attributeBe16(type: number, value: number): this {
    const at = this.#attribute(type, 2);
    this.#view.setUint16(at, value, false);
    return this;
  }

  attributeU32(type: number, value: number): this {
    const at = this.#attribute(type, 4);
    this.#view.setUint32(at, value >>> 0, true);
    return this;
  }

  attributeBe32(type: number, value: number): this {
    const at = this.#attribute(type, 4);
    this.#view.setUint32(at, value >>> 0, false);
    return this;
  }

  attributeBe64(type: number, value: bigint): this {
    const at = this.#attribute(type, 8);
    this.#view.setBigUint64(at, value, false);
    return this;
  }

  /** With the NUL at its end that most kernel policies want. */
  attributeText(type: number, value: string): this {
    return this.attribute(type, utf8.encode(`${value}\0`));
  }

  /** Without NUL, for the few policies that take exactly the text (IFLA_IFALIAS). */
  attributeBareText(type: number, value: string): this {
    return this.attribute(type, utf8.encode(value));
  }

  /** A container of attributes; `flagged` sets NLA_F_NESTED, which newer families insist on. */
  nest(type: number, write: (writer: this) => void, flagged = true): this {
    const at = this.#claim(4);
    this.#view.setUint16(at + 2, flagged ? type | NESTED : type, true);
    const offset = at - this.#start; // growing moves #start
    write(this);
    const size = this.length - offset;
    if (size > 0xffff)
      throw new RangeError(`attribute ${type} holds ${size} bytes: a netlink attribute holds at most 65535`);
    this.#view.setUint16(this.#start + offset, size, true);
    return this;
  }
}

/** One attribute received. Readers check the size. */
export class Attribute {
  readonly type: number;
  readonly bytes: Uint8Array;

  constructor(type: number, bytes: Uint8Array) {
    this.type = type;
    this.bytes = bytes;
  }

  #view(size: number): DataView {
    if (this.bytes.length < size) {
      throw new NetlinkDecodeError(`attribute ${this.type} has ${this.bytes.length} bytes: it must have ${size}`);
    }
    return new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.length);
  }

  get u8(): number {
    return this.#view(1).getUint8(0);
  }

  get u16(): number {
    return this.#view(2).getUint16(0, true);
  }

  get be16(): number {
    return this.#view(2).getUint16(0, false);
  }

  get u32(): number {
    return this.#view(4).getUint32(0, true);
  }

  get i32(): number {
    return this.#view(4).getInt32(0, true);
  }

  get be32(): number {
    return this.#view(4).getUint32(0, false);
  }

  get be64(): bigint {
    return this.#view(8).getBigUint64(0, false);
  }

  get u64(): bigint {
    return this.#view(8).getBigUint64(0, true);
  }

  /** Up to the first NUL. */
  get text(): string {
    const end = this.bytes.indexOf(0);
    return text.decode(end < 0 ? this.bytes : this.bytes.subarray(0, end));
  }

  /** The bytes themselves, of exactly this size. */
  exactly(size: number): Uint8Array {
    if (this.bytes.length !== size) {
      throw new NetlinkDecodeError(`attribute ${this.type} has ${this.bytes.length} bytes: it must have ${size}`);
    }
    return this.bytes;
  }

  nested(): Attributes {
    return readAttributes(this.bytes);
  }

  /** For nests that hold a list: every element, in order. */
  list(): Attribute[] {
    return readAttributeList(this.bytes);
  }
}

export type Attributes = ReadonlyMap<number, Attribute>;

const forEachAttribute = (bytes: Uint8Array, each: (attribute: Attribute) => void): void => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let at = 0; at + 4 <= bytes.length;) {
    const length = view.getUint16(at, true);
    if (length < 4 || at + length > bytes.length) {
      throw new NetlinkDecodeError(`attribute of ${length} bytes at ${at}: it must have 4..${bytes.length - at}`);
    }
    each(new Attribute(view.getUint16(at + 2, true) & TYPE_MASK, bytes.subarray(at + 4, at + length)));
    at += align(length);
  }
};

/** By type; of repeated ones the last. @throws NetlinkDecodeError */
export const readAttributes = (bytes: Uint8Array): Attributes => {
  const found = new Map<number, Attribute>();
  forEachAttribute(bytes, (attribute) => found.set(attribute.type, attribute));
  return found;
};

/** In order, with repeats. @throws NetlinkDecodeError */
export const readAttributeList = (bytes: Uint8Array): Attribute[] => {
  const found: Attribute[] = [];
  forEachAttribute(bytes, (attribute) => found.push(attribute));
  return found;
};
