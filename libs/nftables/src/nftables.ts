import { isAbsent, NetlinkError, NetlinkSocket, PROTOCOL, type Request } from '@unbounded/netlink';

import { findDrift, hasSameBase } from './drift.ts';
import { changesTable } from './change.codec.ts';
import {
  type ObservedCounter,
  isDormant,
  type ObservedTable,
  readBody,
  readChain,
  readCounter,
  readElements,
  readRule,
  readSet,
  tableOf,
} from './observed.codec.ts';
import {
  addElements,
  createSets,
  createTable,
  deleteTable,
  emptyTable,
  fillTable,
  inTransaction,
  removeElements,
  removeFrom,
  replaceElements,
  type TableNames,
} from './table.codec.ts';
import { freeNames, inParts, withSetNames } from './staging.ts';
import { readTraceStep, type TracedDrop } from './trace.codec.ts';
import type { ChainSpec, ElementsSpec, SetSpec, TableFamily, TableSpec } from './table.ts';
import { ELEMENT_LIST, FAMILY, MESSAGE, OBJECT, RULE, SET_ANONYMOUS, startBody } from './wire.codec.ts';

/** A transaction was refused; nothing of it happened. */
export class NftablesError extends Error {
  override readonly name = 'NftablesError';
  /** `ENOENT`, `EEXIST`, `EBUSY`, … */
  readonly code: string;

  constructor(cause: NetlinkError) {
    super(cause.message, { cause });
    this.code = cause.code;
  }
}

/** nf_tables of one network namespace. */
export interface Nftables extends AsyncDisposable {
  /** The table becomes exactly this, or stays as it was. @throws NftablesError, RangeError, AddressSyntaxError */
  replaceTable(table: TableSpec): Promise<void>;
  /** The elements of one set of a table that exists. @throws NftablesError, RangeError, AddressSyntaxError */
  replaceSet(table: Pick<TableSpec, 'family' | 'name'>, set: SetSpec): Promise<void>;
  /** Removes and adds elements of sets without intervals, in one transaction. @throws NftablesError, RangeError, AddressSyntaxError */
  changeElements(table: Pick<TableSpec, 'family' | 'name'>, change: ElementsChange): Promise<void>;
  /** False when there was none. @throws NftablesError */
  deleteTable(family: TableFamily, name: string): Promise<boolean>;
  hasTable(family: TableFamily, name: string): Promise<boolean>;
  /** Of all families, everybody's. */
  listTables(): Promise<readonly Pick<TableSpec, 'family' | 'name'>[]>;
  /** undefined when there is none. */
  readTable(family: TableFamily, name: string): Promise<ObservedTable | undefined>;
  /** Names of a table's chains, sets and counters, without what is in them; undefined when there is no such table. */
  listNames(family: TableFamily, name: string): Promise<TableNames | undefined>;
  /** Named counters of a table; none when there is no such table. */
  readCounters(family: TableFamily, name: string): Promise<readonly ObservedCounter[]>;
  /** Tells of every transaction that changed the table, of whomever, this process too; and when some may have been missed. */
  monitor(family: TableFamily, name: string, handlers: TableMonitorHandlers): TableMonitor;
  /**
   * Tells of packets that a rule of this table traces (`nftrace`) and that any table drops later; iptables of the legacy kind have no
   * such trace, and what others trace is passed over. What comes too fast is lost.
   */
  traceDrops(tracing: Pick<TableSpec, 'family' | 'name'>, onDrop: (drop: TracedDrop) => void): TableMonitor;
  /** The comment of a rule; undefined when it has none, or is not there any more. */
  ruleComment(drop: Required<TracedDrop>): Promise<string | undefined>;
  /** In what the kernel's table differs, in words; undefined when it is as wanted. */
  drift(table: TableSpec): Promise<string | undefined>;
  /** Is the kernel's table exactly this? What counters say does not count. */
  matches(table: TableSpec): Promise<boolean>;
  close(): void;
}

/** An element that is removed and added is there with its new time-out. */
export interface ElementsChange {
  readonly add?: readonly ElementsSpec[];
  readonly remove?: readonly SetSpec[];
}

interface TableMonitorHandlers {
  readonly onChange: () => void;
  /** The socket is useless, and closed. */
  readonly onError?: (error: Error) => void;
}

export interface TableMonitor extends Disposable {
  close(): void;
}

/** NFNLGRP_NFTABLES (linux/netfilter/nfnetlink.h). */
const NFTABLES_GROUP = 7;

/** NFNLGRP_NFTRACE. */
const TRACE_GROUP = 9;

const ECANCELED = 'ECANCELED';
/** The kernel's answer was lost. */
const isLost = (error: unknown): boolean => error instanceof NftablesError && error.code === 'ENOBUFS';

const commit = async (socket: NetlinkSocket, requests: readonly Request[]): Promise<void> => {
  if (requests.length === 0) return; // brackets alone are not answered
  const errors = (await socket.transact(inTransaction(requests))).filter((error) => error !== undefined);
  // What comes behind the refusal is only cancelled: the reason is the other one.
  const cause = errors.find(({ code }) => code !== ECANCELED) ?? errors[0];
  if (cause) throw new NftablesError(cause);
};

const findTable = async (
  socket: NetlinkSocket,
  family: TableFamily,
  name: string,
): Promise<Pick<ObservedTable, 'isDormant'> | undefined> => {
  const body = startBody(FAMILY[family]).attributeText(RULE.table, name).bytes();
  try {
    const [table] = await socket.request({
      type: MESSAGE.getTable,
      flags: 0,
      body,
      what: `find table ${family} ${name}`,
    });
    return { isDormant: table !== undefined && isDormant(readBody(table.body)) };
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
};

const FAMILIES = new Map(Object.entries(FAMILY).map(([family, number]) => [number, family as TableFamily]));

/** Of families that have no name here, none. */
const listTables = (socket: NetlinkSocket): Promise<Pick<TableSpec, 'family' | 'name'>[]> =>
  socket.dump({ type: MESSAGE.getTable, flags: 0, body: startBody(0).bytes(), what: 'list tables' }, ({ body }) => {
    const family = FAMILIES.get(body[0]!);
    return family && { family, name: tableOf(readBody(body)) };
  });

const listCounters = (socket: NetlinkSocket, family: TableFamily, name: string): Promise<ObservedCounter[]> => {
  const body = startBody(FAMILY[family]).attributeText(OBJECT.table, name).bytes();
  const what = `list counters of table ${family} ${name}`;
  return socket.dump({ type: MESSAGE.getObject, flags: 0, body, what }, (message) => {
    const attributes = readBody(message.body);
    return tableOf(attributes) === name ? readCounter(attributes) : undefined;
  });
};

/** A socket of its own, so that an overflow of events loses no reply. */
const openTableMonitor = (
  netnsFd: number,
  [family, name]: readonly [TableFamily, string],
  { onChange, onError }: TableMonitorHandlers,
): TableMonitor => {
  let isChanged = false;
  const socket = new NetlinkSocket({
    protocol: PROTOCOL.netfilter,
    netnsFd,
    onEvent: (message) => {
      isChanged ||= changesTable(message, family, name);
      if (message.type !== MESSAGE.newGeneration || !isChanged) return; // that ends each transaction
      isChanged = false;
      onChange();
    },
    onOverflow: onChange,
    ...(onError && { onError }),
  });
  socket.join(NFTABLES_GROUP);
  socket.unref();
  return { close: () => socket.close(), [Symbol.dispose]: () => socket.close() };
};

/** Packets that are kept in mind: of the oldest the rest is not told. */
const MOST_TRACED = 1000;

const openTrace = (
  netnsFd: number,
  tracing: Pick<TableSpec, 'family' | 'name'>,
  onDrop: (drop: TracedDrop) => void,
): TableMonitor => {
  const ours = new Set<number>();
  const socket = new NetlinkSocket({
    protocol: PROTOCOL.netfilter,
    netnsFd,
    onEvent(message) {
      const step = readTraceStep(message);
      if (!step) return;
      const { packet, at, isRule, isDrop } = step;
      if (isRule && at.family === tracing.family && at.table === tracing.name) ours.add(packet);
      else if (isDrop && ours.has(packet)) onDrop(at);
      const [oldest] = ours;
      if (ours.size > MOST_TRACED && oldest !== undefined) ours.delete(oldest);
    },
    onOverflow: () => undefined,
  });
  socket.join(TRACE_GROUP);
  socket.unref();
  return { close: () => socket.close(), [Symbol.dispose]: () => socket.close() };
};

const readComment = async (
  socket: NetlinkSocket,
  { family, table, chain, handle }: Required<TracedDrop>,
): Promise<string | undefined> => {
  const body = startBody(FAMILY[family])
    .attributeText(RULE.table, table)
    .attributeText(RULE.chain, chain)
    .attributeBe64(RULE.handle, BigInt(handle))
    .bytes();
  const what = `read rule ${handle} of chain ${chain} in table ${family} ${table}`;
  try {
    const [answer] = await socket.request({ type: MESSAGE.getRule, flags: 0, body, what });
    return answer && readRule(readBody(answer.body)).comment;
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
};

/** What a table has of one kind, without what `read` passes over. */
const listIn = <T>(
  socket: NetlinkSocket,
  { family, name }: Pick<TableSpec, 'family' | 'name'>,
  type: number,
  read: (attributes: ReturnType<typeof readBody>) => T | undefined,
): Promise<T[]> => {
  const body = startBody(FAMILY[family]).attributeText(RULE.table, name).bytes();
  return socket.dump({ type, flags: 0, body, what: `list table ${family} ${name}` }, (message) => {
    const attributes = readBody(message.body);
    return tableOf(attributes) === name ? read(attributes) : undefined;
  });
};

const readOnce = async (
  socket: NetlinkSocket,
  family: TableFamily,
  name: string,
): Promise<ObservedTable | undefined> => {
  const found = await findTable(socket, family, name);
  if (!found) return undefined;
  const elements = async (set: string) => {
    const body = startBody(FAMILY[family])
      .attributeText(ELEMENT_LIST.table, name)
      .attributeText(ELEMENT_LIST.set, set)
      .bytes();
    const pages = await socket.dump(
      { type: MESSAGE.getElement, flags: 0, body, what: `list set ${name} ${set}` },
      (message) => readElements(readBody(message.body)),
    );
    return pages.flat();
  };
  const table = { family, name };
  const [chains, rules, sets, counters] = [
    await listIn(socket, table, MESSAGE.getChain, readChain),
    await listIn(socket, table, MESSAGE.getRule, readRule),
    await listIn(socket, table, MESSAGE.getSet, readSet),
    await listCounters(socket, family, name),
  ];
  const filled = [];
  for (const set of sets) filled.push({ ...set, elements: await elements(set.name) });
  return {
    ...found,
    chains: chains.map((chain) => ({ ...chain, rules: rules.filter((rule) => rule.chain === chain.name) })),
    sets: filled,
    counters,
  };
};

/** One without a name of its own belongs to a rule, and goes with that. */
const readNamedSet = (attributes: ReturnType<typeof readBody>): ReturnType<typeof readSet> | undefined => {
  const set = readSet(attributes);
  return (set.flags & SET_ANONYMOUS) === 0 ? set : undefined;
};

type FoundChain = ReturnType<typeof readChain>;

interface Outline extends Pick<ObservedTable, 'isDormant'> {
  readonly names: TableNames;
  readonly chains: readonly FoundChain[];
}

/** What a table holds, without what is in it; undefined when there is none. */
const readOutline = async (
  socket: NetlinkSocket,
  table: Pick<TableSpec, 'family' | 'name'>,
): Promise<Outline | undefined> => {
  const { family, name } = table;
  const found = await findTable(socket, family, name);
  if (!found) return undefined;
  const chains = await listIn(socket, table, MESSAGE.getChain, readChain);
  const sets = await listIn(socket, table, MESSAGE.getSet, readNamedSet);
  const counters = await listCounters(socket, family, name);
  const namesOf = (some: readonly { readonly name: string }[]): string[] => some.map((one) => one.name);
  return { names: { chains: namesOf(chains), sets: namesOf(sets), counters: namesOf(counters) }, chains, ...found };
};

/**
 * Chains at hooks that are there as they are to be. They get other rules; made anew, the former one and its successor would both be in
 * force for as long as the kernel works off the transaction: a packet that loses a mark in the one has none in the other.
 */
const standingChains = ({ family, chains }: TableSpec, found: readonly FoundChain[]): ReadonlySet<string> => {
  const known = new Map(found.map((chain) => [chain.name, chain]));
  const isThere = (chain: ChainSpec): boolean => {
    const there = known.get(chain.name);
    return chain.base !== undefined && there !== undefined && hasSameBase(family, chain, there);
  };
  return new Set(chains.filter(isThere).map(({ name }) => name));
};

/** The table goes, and another comes: in one transaction. */
const replaceAtOnce = (socket: NetlinkSocket, table: TableSpec): Promise<void> =>
  // Creating before deleting makes the deletion succeed whether it was there or not.
  commit(socket, [createTable(table), deleteTable(table), createTable(table), ...fillTable(table)]);

const NOTHING: TableNames = { chains: [], sets: [], counters: [] };

/** In one transaction; sets that are shown late come in one before, beside those that are in use. */
const replaceTable = async (socket: NetlinkSocket, table: TableSpec): Promise<void> => {
  const former = await readOutline(socket, table);
  const { names: taken, chains } = former ?? { names: NOTHING, chains: [] };
  const names = freeNames(table, new Set(taken.sets));
  // A dormant one would stay so: none of its chains is at a hook, so none is kept there.
  if (!names || former?.isDormant) return await replaceAtOnce(socket, table);
  const { staged, rest } = inParts(withSetNames(table, names));
  if (staged.length > 0) await commit(socket, [createTable(table), ...createSets(table, staged)]);
  try {
    const standing = standingChains(table, chains);
    const gone = { ...taken, chains: taken.chains.filter((name) => !standing.has(name)) };
    await commit(socket, [createTable(table), ...emptyTable(table, gone), ...fillTable(rest, standing)]);
  } catch (error) {
    if (isLost(error)) throw error; // it may be in force
    const own = { ...NOTHING, sets: staged.map(({ name }) => name) };
    await commit(socket, former ? removeFrom(table, own) : [deleteTable(table)]).catch(() => undefined);
    if (!former) throw error;
    // Somebody put something into the table that refers to what is there, and has no name to be removed by: it goes with the table.
    await replaceAtOnce(socket, table);
  }
};

const READ_ATTEMPTS = 3;

/** A set that is listed and then gone was taken away in between, by whoever replaced or deleted the table: it is read anew. */
const readTable: typeof readOnce = async (socket, family, name) => {
  for (let attempt = 1; ; attempt++)
    try {
      return await readOnce(socket, family, name);
    } catch (error) {
      if (!isAbsent(error) || attempt === READ_ATTEMPTS) throw error;
    }
};

/** @throws Error with `code` when the socket cannot be opened */
export const createNftables = (options: { readonly netnsFd?: number } = {}): Nftables => {
  const socket = new NetlinkSocket({ protocol: PROTOCOL.netfilter, ...options });
  const drift = async (table: TableSpec): Promise<string | undefined> =>
    findDrift(table, await readTable(socket, table.family, table.name));
  return {
    replaceTable: (table) => replaceTable(socket, table),
    replaceSet: (table, set) => commit(socket, replaceElements(table, set)),
    changeElements: (table, { add = [], remove = [] }) =>
      commit(socket, [
        ...remove.flatMap((set) => removeElements(table, set)),
        ...add.flatMap((set) => addElements(table, set)),
      ]),
    deleteTable: async (family, name) => {
      try {
        await commit(socket, [deleteTable({ family, name })]);
        return true;
      } catch (error) {
        if (error instanceof NftablesError && error.code === 'ENOENT') return false;
        throw error;
      }
    },
    hasTable: async (family, name) => (await findTable(socket, family, name)) !== undefined,
    listTables: () => listTables(socket),
    readTable: (family, name) => readTable(socket, family, name),
    listNames: async (family, name) => (await readOutline(socket, { family, name }))?.names,
    readCounters: (family, name) => listCounters(socket, family, name),
    monitor: (family, name, handlers) =>
      socket.withNetns((netnsFd) => openTableMonitor(netnsFd, [family, name], handlers)),
    traceDrops: (tracing, onDrop) => socket.withNetns((netnsFd) => openTrace(netnsFd, tracing, onDrop)),
    ruleComment: (rule) => readComment(socket, rule),
    drift,
    matches: async (table) => (await drift(table)) === undefined,
    close: () => socket.close(),
    [Symbol.asyncDispose]: async () => socket.close(),
  };
};
