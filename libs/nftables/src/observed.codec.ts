import {
  type Attribute,
  type Attributes,
  NetlinkDecodeError,
  readAttributeList,
  readAttributes,
} from '@unbounded/netlink';

import type { Instruction } from './instruction.codec.ts';
import type { Element } from './set.codec.ts';
import {
  CHAIN,
  COUNTER,
  COUNTER_OBJECT,
  DATA,
  decodeComment,
  DEVICE_NAME,
  ELEMENT,
  ELEMENT_LIST,
  EXPRESSION,
  HEADER_BYTES,
  HOOK,
  INTERVAL_END,
  OBJECT,
  RULE,
  SET,
  SET_DESCRIPTION,
  SET_FIELD,
  TABLE,
  TABLE_DORMANT,
} from './wire.codec.ts';

/** What the kernel holds of a table, in its own terms. */
export interface ObservedTable {
  /** Its chains are listed, and at no hook. Absent: they are. */
  readonly isDormant?: boolean;
  readonly chains: readonly ObservedChain[];
  readonly sets: readonly ObservedSet[];
  readonly counters: readonly ObservedCounter[];
}
export interface ObservedCounter {
  readonly name: string;
  readonly packets: number;
  readonly bytes: number;
}
export interface ObservedChain {
  readonly name: string;
  readonly base?: {
    readonly type: string;
    readonly hook: number;
    readonly priority: number;
    readonly policy: 'accept' | 'drop';
    readonly devices: readonly string[];
  };
  readonly rules: readonly ObservedRule[];
}
export interface ObservedRule {
  readonly comment?: string;
  readonly instructions: readonly Instruction[];
}
export interface ObservedSet {
  readonly name: string;
  readonly keyType: number;
  readonly keyLength: number;
  readonly flags: number;
  /** Bytes of each field of a concatenation. */
  readonly fields: readonly number[];
  readonly elements: readonly Element[];
}

/** The attributes behind struct nfgenmsg. @throws NetlinkDecodeError */
export const readBody = (body: Uint8Array): Attributes => {
  if (body.length < HEADER_BYTES)
    throw new NetlinkDecodeError(`nf_tables message of ${body.length} bytes: at least ${HEADER_BYTES} are needed`);
  return readAttributes(body.subarray(HEADER_BYTES));
};

const text = (attributes: Attributes, type: number): string => attributes.get(type)?.text ?? '';

export const tableOf = (attributes: Attributes): string => text(attributes, RULE.table); // 1 in all of them

const readBase = (attributes: Attributes, hookAttribute: Attribute): NonNullable<ObservedChain['base']> => {
  const hook = hookAttribute.nested();
  const names = hook.get(HOOK.devices)?.list() ?? [];
  return {
    type: text(attributes, CHAIN.type),
    hook: hook.get(HOOK.number)?.be32 ?? 0,
    priority: (hook.get(HOOK.priority)?.be32 ?? 0) | 0, // signed
    policy: attributes.get(CHAIN.policy)?.be32 === 0 ? 'drop' : 'accept',
    devices: names.filter(({ type }) => type === DEVICE_NAME).map((name) => name.text),
  };
};

export const readChain = (attributes: Attributes): Omit<ObservedChain, 'rules'> => {
  const hook = attributes.get(CHAIN.hook);
  return { name: text(attributes, CHAIN.name), ...(hook && { base: readBase(attributes, hook) }) };
};

export const readRule = (attributes: Attributes): ObservedRule & { readonly chain: string } => {
  const userData = attributes.get(RULE.userData);
  const comment = userData && decodeComment(userData.bytes);
  return {
    chain: text(attributes, RULE.chain),
    ...(comment !== undefined && { comment }),
    instructions: (attributes.get(RULE.expressions)?.list() ?? []).map((entry) => {
      const fields = entry.nested();
      return { name: text(fields, EXPRESSION.name), data: fields.get(EXPRESSION.data)?.bytes ?? new Uint8Array(0) };
    }),
  };
};

const readFields = (description: Attribute | undefined): number[] =>
  (description?.nested().get(SET_DESCRIPTION.fields)?.list() ?? []).map(
    (field) => field.nested().get(SET_FIELD.length)?.be32 ?? 0,
  );

export const isDormant = (table: Attributes): boolean => ((table.get(TABLE.flags)?.be32 ?? 0) & TABLE_DORMANT) !== 0;

export const readSet = (attributes: Attributes): Omit<ObservedSet, 'elements'> => ({
  name: text(attributes, SET.name),
  keyType: attributes.get(SET.keyType)?.be32 ?? 0,
  keyLength: attributes.get(SET.keyLength)?.be32 ?? 0,
  flags: attributes.get(SET.flags)?.be32 ?? 0,
  fields: readFields(attributes.get(SET.description)),
});

const countOf = (counter: Attributes): number | undefined => {
  const packets = counter.get(COUNTER.packets)?.be64;
  return packets === undefined ? undefined : Number(packets);
};

/** Packets that the rule counted; undefined: it has no counter. @throws NetlinkDecodeError */
export const packetsOf = ({ instructions }: ObservedRule): number | undefined => {
  const counter = instructions.find(({ name }) => name === 'counter');
  return counter && countOf(readAttributes(counter.data));
};

/** Old kernels give one expression, newer ones one or a list. */
const elementPackets = (fields: Attributes): number | undefined => {
  const [first] = fields.get(ELEMENT.expressions)?.list() ?? [];
  const expression = (fields.get(ELEMENT.expression) ?? first)?.nested();
  if (!expression || text(expression, EXPRESSION.name) !== 'counter') return undefined;
  const data = expression.get(EXPRESSION.data);
  return data && countOf(data.nested());
};

/** undefined: an object of another type. */
export const readCounter = (attributes: Attributes): ObservedCounter | undefined => {
  if (attributes.get(OBJECT.type)?.be32 !== COUNTER_OBJECT) return undefined;
  const data = attributes.get(OBJECT.data)?.nested();
  const number = (type: number): number => Number(data?.get(type)?.be64 ?? 0n);
  return { name: text(attributes, OBJECT.name), packets: number(COUNTER.packets), bytes: number(COUNTER.bytes) };
};

/** One message of a dump of elements. */
export const readElements = (attributes: Attributes): Element[] =>
  (attributes.get(ELEMENT_LIST.elements)?.list() ?? []).map((entry) => {
    const fields = entry.nested();
    const lastKey = fields.get(ELEMENT.keyEnd)?.nested().get(DATA.value)?.bytes;
    const packets = elementPackets(fields);
    return {
      ...(packets !== undefined && { packets }),
      key: fields.get(ELEMENT.key)?.nested().get(DATA.value)?.bytes ?? new Uint8Array(0),
      ...(lastKey && { lastKey }),
      isEnd: ((fields.get(ELEMENT.flags)?.be32 ?? 0) & INTERVAL_END) !== 0,
    };
  });

const sameBytes = (a: Uint8Array, b: Uint8Array): boolean =>
  a.length === b.length && a.every((byte, index) => byte === b[index]);

const parsed = (bytes: Uint8Array): Attribute[] | undefined => {
  try {
    return readAttributeList(bytes);
  } catch {
    return undefined;
  }
};

/**
 * Do these attributes say the same? The kernel tells its defaults (zeros) where none were sent, sets flag bits of nested
 * attributes or not, and has an order of its own.
 */
const sameAttributes = (sent: Uint8Array, told: Uint8Array): boolean => {
  if (sameBytes(sent, told)) return true;
  const [ours, theirs] = [parsed(sent), parsed(told)];
  if (!ours || !theirs) return false;
  const byType = new Map(theirs.map((attribute) => [attribute.type, attribute.bytes]));
  for (const { type, bytes } of ours) {
    const other = byType.get(type);
    if (!other || !sameAttributes(bytes, other)) return false;
    byType.delete(type);
  }
  return [...byType.values()].every((bytes) => bytes.every((byte) => byte === 0));
};

/** What counts packets differs from one moment to the next. */
const sameInstruction = (sent: Instruction, told: Instruction | undefined): boolean =>
  told !== undefined && sent.name === told.name && (sent.name === 'counter' || sameAttributes(sent.data, told.data));

export const sameInstructions = (sent: readonly Instruction[], told: readonly Instruction[]): boolean =>
  sent.length === told.length && sent.every((instruction, index) => sameInstruction(instruction, told[index]));
