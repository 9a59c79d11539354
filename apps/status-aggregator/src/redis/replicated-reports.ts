import { acceptPush, type HeldReport, parsePush, type Push } from '@unbounded/status';
import type { HeldReports, ReportClocks } from '../reports/held-reports.ts';
import { isNodeName } from '../reports/node-name.ts';
import { createReportTable, type ReportTable, type TableEntry } from '../reports/report-table.ts';
import { packJson, unpackJson } from './bounded-gzip.ts';
import type { RedisMetrics } from './redis-metrics.ts';
import { MOST_NODES, MOST_REPORT_BYTES } from './redis.limits.ts';
import type { HeldValue, ReportEntry } from './report-entry.codec.ts';
import type { ReportStore } from './report-store.ts';

interface ReplicatedEntry extends TableEntry {
  /** Of its write to Redis; 0: it is here alone. */
  readonly order: number;
}

/**
 * The last report of each node, of whichever replica it came to. A push is in Redis when it is answered, or, where Redis does not take it, in
 * memory alone: the next load writes it.
 */
export interface ReplicatedReports extends HeldReports {
  /** What another replica (or this one) took. */
  follow(entry: ReportEntry, nowMs: number): Promise<void>;
  /** Reads all of Redis's, and writes what only this replica has. */
  load(): Promise<void>;
  /** Writes what Redis did not take when it came. */
  restore(): Promise<void>;
}

export interface ReplicatedReportsOptions {
  readonly clocks: ReportClocks;
  readonly store: ReportStore;
  readonly isUp: () => boolean;
  readonly metrics: Pick<RedisMetrics, 'skipped'>;
}

/** Ages are known to so much: of two reports that differ by less the one in Redis stands. */
const AGE_TOLERANCE_MS = 1000;

/** Longer than a report counts for its node. */
const TOO_OLD_MS = 60_000;

/** By the clock of Redis. One that was set back since says nothing of a report that seems to come from the future. */
const ageOf = ({ nowMs, receivedMs }: { readonly nowMs: number; readonly receivedMs: number }): number =>
  receivedMs > nowMs + AGE_TOLERANCE_MS ? TOO_OLD_MS : Math.max(0, nowMs - receivedMs);

interface Context extends ReplicatedReportsOptions {
  readonly table: ReportTable<ReplicatedEntry>;
}

const heldFrom = async (
  before: HeldReport | undefined,
  entry: Pick<ReportEntry, 'epoch' | 'revision' | 'base' | 'packed'>,
): Promise<HeldReport | undefined> => {
  const { epoch, revision, base } = entry;
  const value = await unpackJson(entry.packed, MOST_REPORT_BYTES);
  const push = parsePush(
    base === undefined ? { epoch, revision, report: value } : { epoch, revision, base, patch: value },
  );
  const accepted = push.ok ? acceptPush(before, push.value) : push;
  return accepted.ok && typeof accepted.value === 'object' ? accepted.value : undefined;
};

const put = (
  { table, clocks }: Context,
  node: string,
  held: HeldReport,
  at: { nowMs: number; receivedMs: number; order: number },
): void => {
  const ageMs = ageOf(at);
  table.set(node, {
    held,
    atMs: clocks.elapsed() - ageMs,
    time: new Date(at.receivedMs).toISOString(),
    order: at.order,
  });
};

/** From the hash, unless what is here is later. */
const adopt = async (context: Context, node: string, value: HeldValue, nowMs: number): Promise<void> => {
  const { table, clocks, metrics } = context;
  const mine = table.get(node);
  if (!isNodeName(node)) return metrics.skipped('report');
  if (!mine && table.size >= MOST_NODES) return metrics.skipped('report');
  if (mine && mine.order >= value.order) return;
  const ageMs = ageOf({ nowMs, receivedMs: value.receivedMs });
  const ofEpoch = mine?.held.epoch === value.epoch ? mine.held : undefined;
  // A server that was frozen takes only then what it was sent before: the receipt is late, the revision is not.
  const isLater = ofEpoch
    ? ofEpoch.revision > value.revision
    : mine !== undefined && clocks.elapsed() - mine.atMs < ageMs - AGE_TOLERANCE_MS;
  if (mine?.order === 0 && isLater) return;
  const held =
    ofEpoch?.revision === value.revision ? ofEpoch : await heldFrom(undefined, { ...value, base: undefined });
  if (!held) return metrics.skipped('report');
  if ((table.get(node)?.order ?? 0) < value.order) put(context, node, held, { ...value, nowMs });
};

const fetchOne = async (context: Context, node: string): Promise<void> => {
  const { nowMs, value } = await context.store.one(node);
  if (value) await adopt(context, node, value, nowMs);
};

const followEntry = async (context: Context, entry: ReportEntry, nowMs: number): Promise<void> => {
  const { table, metrics } = context;
  const { node, base } = entry;
  const mine = table.get(node);
  if (mine && mine.order >= entry.order) return;
  // Sent before the server was frozen, taken after: what is here is later, and not in Redis yet.
  if (mine?.order === 0 && mine.held.epoch === entry.epoch && mine.held.revision > entry.revision) return;
  const hasBase = base === undefined || (mine?.held.epoch === entry.epoch && mine.held.revision === base);
  if (!hasBase || !mine || entry.packed.length === 0) return fetchOne(context, node);
  const held = await heldFrom(mine.held, entry);
  if (!held) return metrics.skipped('report-entry');
  if ((table.get(node)?.order ?? 0) < entry.order) put(context, node, held, { ...entry, nowMs });
};

const publish = async (context: Context, node: string, held: HeldReport, push: Push): Promise<number | 'resync'> => {
  const { store } = context;
  const document = await packJson(held.document);
  const result = await store.publish({
    ...{ node, document, epoch: held.epoch, revision: held.revision, base: push.report ? undefined : push.base },
    ...{ change: push.report ? document : await packJson(push.patch), ageMs: 0, mode: 'push' },
  });
  return typeof result === 'object' ? result.order : 'resync';
};

const accept = async (context: Context, node: string, push: Push) => {
  const { table, clocks, isUp } = context;
  let accepted = acceptPush(table.get(node)?.held, push);
  if (accepted.ok && accepted.value === 'resync' && isUp()) {
    // Another replica took the one before a moment ago.
    await fetchOne(context, node).catch(() => {});
    accepted = acceptPush(table.get(node)?.held, push);
  }
  if (!accepted.ok) return { error: accepted.error };
  if (accepted.value === 'resync') return 'resync';
  const held = accepted.value;
  const atMs = clocks.elapsed();
  const order = isUp() ? await publish(context, node, held, push).catch(() => 0) : 0;
  if (order === 'resync') return 'resync';
  const mine = table.get(node);
  if (order === 0 || (mine?.order ?? 0) < order)
    table.set(node, { held, atMs, time: clocks.now().toISOString(), order });
  return 'accepted';
};

/** Reports that Redis lacks: of the time when it was away, or all, where it came back empty. */
const restore = async (context: Context): Promise<void> => {
  const { table, store, clocks } = context;
  for (const [node, entry] of [...table.entries()]) {
    if (entry.order !== 0) continue;
    const document = await packJson(entry.held.document);
    const { epoch, revision } = entry.held;
    const ageMs = clocks.elapsed() - entry.atMs;
    const result = await store.publish({
      ...{ node, epoch, revision, base: undefined, document, change: document, ageMs, mode: 'restore' },
    });
    if (typeof result !== 'object') await fetchOne(context, node);
    else if (table.get(node) === entry) table.set(node, { ...entry, order: result.order });
  }
};

export const createReplicatedReports = (options: ReplicatedReportsOptions): ReplicatedReports => {
  const table = createReportTable<ReplicatedEntry>(options.clocks.elapsed);
  const context: Context = { ...options, table };
  return {
    accept: (node, push) => accept(context, node, push),
    report: (node) => table.report(node),
    received: () => table.received(),
    forget(isNode) {
      const gone = table.forget(isNode);
      // What stays there is read by the next load, and forgotten then.
      if (gone.length > 0 && options.isUp()) void options.store.forget(gone).catch(() => {});
    },
    follow: (entry, nowMs) => followEntry(context, entry, nowMs),
    restore: () => restore(context),
    async load() {
      // Another server counts anew.
      for (const [node, entry] of [...table.entries()]) table.set(node, { ...entry, order: 0 });
      for await (const { nowMs, values } of options.store.pages()) {
        for (const [node, value] of values) {
          if (value === 'alone') await fetchOne(context, node);
          else await adopt(context, node, value, nowMs);
        }
      }
      await restore(context);
    },
  };
};
