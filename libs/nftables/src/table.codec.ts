import { FLAG, type Request } from '@unbounded/netlink';

import { compileRule } from './expression.codec.ts';
import { writeInstructions } from './instruction.codec.ts';
import { type Element, elementsOf, layoutOf } from './set.codec.ts';
import type { ChainSpec, ElementsSpec, Hook, RuleSpec, SetSpec, TableFamily, TableSpec } from './table.ts';
import {
  batchBody,
  CHAIN,
  COUNTER_OBJECT,
  DATA,
  DEVICE_NAME,
  ELEMENT,
  ELEMENT_LIST,
  encodeComment,
  FAMILY,
  HOOK,
  HOST_ORDER_KEYS,
  INTERVAL_END,
  LIST_ENTRY,
  MESSAGE,
  OBJECT,
  RULE,
  SET,
  SET_DESCRIPTION,
  SET_FIELD,
  startBody,
  TABLE,
} from './wire.codec.ts';

/** NF_INET_*; ingress is 0 in the netdev family and NF_INET_INGRESS in inet. */
const HOOKS: Readonly<Record<Exclude<Hook, 'ingress'>, number>> = {
  prerouting: 0,
  input: 1,
  forward: 2,
  output: 3,
  postrouting: 4,
};
const INET_INGRESS = 5;
/** NF_ARP_*. */
const ARP_HOOKS: Partial<Record<Hook, number>> = { input: 0, output: 1 };
/** Elements of one message: an attribute holds 64 KiB, an element takes at most 84 bytes. */
const ELEMENTS_PER_MESSAGE = 700;
const CREATE = FLAG.create;

interface Place {
  readonly family: TableFamily;
  readonly name: string;
}

/** @throws RangeError where the family has no such hook */
export const hookNumber = (family: TableFamily, hook: Hook): number => {
  if (family !== 'arp') return hook === 'ingress' ? (family === 'inet' ? INET_INGRESS : 0) : HOOKS[hook];
  const number = ARP_HOOKS[hook];
  if (number === undefined) throw new RangeError(`the arp family has no hook ${hook}`);
  return number;
};

const tableRequest = (type: number, flags: number, { family, name }: Place): Request => ({
  type,
  flags,
  body: startBody(FAMILY[family]).attributeText(TABLE.name, name).bytes(),
  what: `${type === MESSAGE.deleteTable ? 'delete' : 'create'} table ${family} ${name}`,
});

export const createTable = (table: Place): Request => tableRequest(MESSAGE.newTable, CREATE, table);
export const deleteTable = (table: Place): Request => tableRequest(MESSAGE.deleteTable, 0, table);

const createChain = (table: Place, chain: ChainSpec): Request => {
  const writer = startBody(FAMILY[table.family])
    .attributeText(CHAIN.table, table.name)
    .attributeText(CHAIN.name, chain.name);
  const { base } = chain;
  if (base) {
    writer.nest(CHAIN.hook, () => {
      writer
        .attributeBe32(HOOK.number, hookNumber(table.family, base.hook))
        .attributeBe32(HOOK.priority, base.priority);
      const { devices } = base;
      if (devices)
        writer.nest(HOOK.devices, () => devices.forEach((device) => writer.attributeText(DEVICE_NAME, device)));
    });
    writer.attributeText(CHAIN.type, base.type).attributeBe32(CHAIN.policy, base.policy === 'drop' ? 0 : 1);
  }
  return {
    type: MESSAGE.newChain,
    flags: CREATE,
    body: writer.bytes(),
    what: `create chain ${table.name} ${chain.name}`,
  };
};

const createRule = (table: Place, chain: string, rule: RuleSpec): Request => {
  const writer = startBody(FAMILY[table.family]).attributeText(RULE.table, table.name).attributeText(RULE.chain, chain);
  writeInstructions(writer, RULE.expressions, compileRule(table.family, rule.expressions));
  if (rule.comment !== undefined) writer.attribute(RULE.userData, encodeComment(rule.comment));
  const what = `add rule to ${table.name} ${chain}${rule.comment === undefined ? '' : ` ("${rule.comment}")`}`;
  return { type: MESSAGE.newRule, flags: CREATE | FLAG.append, body: writer.bytes(), what };
};

const createSet = (table: Place, set: SetSpec, id: number): Request => {
  const { type, length, flags, fields } = layoutOf(set);
  const writer = startBody(FAMILY[table.family]).attributeText(SET.table, table.name).attributeText(SET.name, set.name);
  writer.attributeBe32(SET.flags, flags).attributeBe32(SET.keyType, type);
  writer.attributeBe32(SET.keyLength, length).attributeBe32(SET.id, id);
  if (fields.length > 0) {
    writer.nest(SET.description, () =>
      writer.nest(SET_DESCRIPTION.fields, () => {
        for (const bytes of fields) writer.nest(LIST_ENTRY, () => writer.attributeBe32(SET_FIELD.length, bytes));
      }),
    );
  }
  const bounded = set.dynamic ?? set.timed;
  if (bounded) writer.nest(SET.description, () => writer.attributeBe32(SET_DESCRIPTION.size, bounded.maxElements));
  if (set.dynamic) writer.attributeBe64(SET.timeout, BigInt(set.dynamic.timeoutMs));
  if (set.type === 'iif' || set.type === 'mark' || set.type === 'ifname')
    writer.attribute(SET.userData, HOST_ORDER_KEYS);
  return { type: MESSAGE.newSet, flags: CREATE, body: writer.bytes(), what: `create set ${table.name} ${set.name}` };
};

const elementsRequest = (
  change: 'add' | 'remove',
  table: Place,
  { name: set, timeoutMs }: ElementsSpec,
  elements: readonly Element[],
): Request => {
  const writer = startBody(FAMILY[table.family])
    .attributeText(ELEMENT_LIST.table, table.name)
    .attributeText(ELEMENT_LIST.set, set);
  writer.nest(ELEMENT_LIST.elements, () => {
    for (const { key, isEnd, lastKey } of elements) {
      writer.nest(LIST_ENTRY, () => {
        if (isEnd) writer.attributeBe32(ELEMENT.flags, INTERVAL_END);
        writer.nest(ELEMENT.key, () => writer.attribute(DATA.value, key));
        if (lastKey) writer.nest(ELEMENT.keyEnd, () => writer.attribute(DATA.value, lastKey));
        if (timeoutMs !== undefined && change === 'add') writer.attributeBe64(ELEMENT.timeout, BigInt(timeoutMs));
      });
    }
  });
  return {
    type: change === 'add' ? MESSAGE.newElement : MESSAGE.deleteElement,
    flags: change === 'add' ? CREATE : 0,
    body: writer.bytes(),
    what: `${change} ${elements.length} elements of set ${table.name} ${set}`,
  };
};

const changeElements = (change: 'add' | 'remove', table: Place, set: ElementsSpec): Request[] => {
  const elements = elementsOf(set);
  const requests: Request[] = [];
  for (let at = 0; at < elements.length; at += ELEMENTS_PER_MESSAGE) {
    requests.push(elementsRequest(change, table, set, elements.slice(at, at + ELEMENTS_PER_MESSAGE)));
  }
  return requests;
};

const fillSet = (table: Place, set: ElementsSpec): Request[] => changeElements('add', table, set);

/** Besides those that are there; one that is there already is fine. Not for sets of intervals, which would overlap. */
export const addElements = fillSet;
/** One that is not there is fine, unless the set is full: what was added before is there to be removed. */
export const removeElements = (table: Place, set: SetSpec): Request[] => [
  ...changeElements('add', table, set),
  ...changeElements('remove', table, set),
];

/** Empties the set, then fills it: in one transaction no packet sees it empty. */
export const replaceElements = (table: Place, set: SetSpec): Request[] => {
  const body = startBody(FAMILY[table.family])
    .attributeText(ELEMENT_LIST.table, table.name)
    .attributeText(ELEMENT_LIST.set, set.name)
    .bytes();
  return [
    { type: MESSAGE.deleteElement, flags: 0, body, what: `empty set ${table.name} ${set.name}` },
    ...fillSet(table, set),
  ];
};

const createCounter = (table: Place, name: string): Request => {
  const writer = startBody(FAMILY[table.family])
    .attributeText(OBJECT.table, table.name)
    .attributeText(OBJECT.name, name);
  writer.attributeBe32(OBJECT.type, COUNTER_OBJECT).nest(OBJECT.data, () => undefined);
  return { type: MESSAGE.newObject, flags: CREATE, body: writer.bytes(), what: `create counter ${table.name} ${name}` };
};

/**
 * Everything of a table, so that what refers comes after what is referred to.
 * @param standing names of chains that are there, empty
 * @throws RangeError, AddressSyntaxError
 */
export const fillTable = (table: TableSpec, standing: ReadonlySet<string> = new Set()): Request[] => [
  ...(table.counters ?? []).map((name) => createCounter(table, name)),
  ...createSets(table, table.sets ?? []),
  ...table.chains.filter(({ name }) => !standing.has(name)).map((chain) => createChain(table, chain)),
  ...table.chains.flatMap((chain) => chain.rules.map((rule) => createRule(table, chain.name, rule))),
];

/** Sets alone, with their elements. */
export const createSets = (table: Place, sets: readonly SetSpec[]): Request[] =>
  sets.flatMap((set, index) => [createSet(table, set, index + 1), ...fillSet(table, set)]);

/** What a table holds, by name. */
export interface TableNames {
  readonly chains: readonly string[];
  readonly sets: readonly string[];
  readonly counters: readonly string[];
}

/** Takes these out of a table that stays; no rule refers to them. */
export const removeFrom = (table: Place, { chains, sets, counters }: TableNames): Request[] => {
  const request = (type: number, kind: 'chain' | 'set' | 'counter', name: string): Request => {
    // Chains, sets and counters have their table and name in different attributes.
    const at = { chain: CHAIN, set: SET, counter: OBJECT }[kind];
    const body = startBody(FAMILY[table.family]).attributeText(at.table, table.name).attributeText(at.name, name);
    if (kind === 'counter') body.attributeBe32(OBJECT.type, COUNTER_OBJECT);
    return { type, flags: 0, body: body.bytes(), what: `delete ${kind} ${table.name} ${name}` };
  };
  return [
    ...chains.map((name) => request(MESSAGE.deleteChain, 'chain', name)),
    ...sets.map((name) => request(MESSAGE.deleteSet, 'set', name)),
    ...counters.map((name) => request(MESSAGE.deleteObject, 'counter', name)),
  ];
};

/** The same with all rules of the table, which come first: they refer to the others. */
export const emptyTable = (table: Place, names: TableNames): Request[] => [
  {
    type: MESSAGE.deleteRule,
    flags: 0,
    body: startBody(FAMILY[table.family]).attributeText(RULE.table, table.name).bytes(),
    what: `delete the rules of ${table.name}`,
  },
  ...removeFrom(table, names),
];

/** The messages between the brackets of a transaction. */
export const inTransaction = (requests: readonly Request[]): Request[] => [
  { type: MESSAGE.batchBegin, flags: 0, body: batchBody(), what: 'begin transaction', silent: true },
  ...requests,
  { type: MESSAGE.batchEnd, flags: 0, body: batchBody(), what: 'commit transaction', silent: true },
];
