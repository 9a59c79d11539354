import type { HeldReport, ReceivedReport } from '@unbounded/status';
import type { NodeReports } from '../intake.port.ts';

export interface TableEntry {
  readonly held: HeldReport;
  /** Of the receipt, by the monotonic clock of this process; also before its start. */
  readonly atMs: number;
  /** RFC 3339, for operators. */
  readonly time: string;
}

/** Reports in memory, by node. */
export interface ReportTable<E extends TableEntry> extends NodeReports {
  readonly size: number;
  get(node: string): E | undefined;
  set(node: string, entry: E): void;
  entries(): IterableIterator<[string, E]>;
  /** As of now. */
  received(): ReadonlyMap<string, ReceivedReport>;
  /** Nodes that are none any more, once they have not reported for a while; they are not in it then. */
  forget(isNode: (name: string) => boolean): readonly string[];
}

/** A Node may be seen later than its agent's first report. */
const FORGET_AFTER_MS = 60_000;

/** @param elapsed milliseconds, monotonic */
export const createReportTable = <E extends TableEntry>(elapsed: () => number): ReportTable<E> => {
  const table = new Map<string, E>();
  return {
    get size() {
      return table.size;
    },
    get: (node) => table.get(node),
    set: (node, entry) => void table.set(node, entry),
    entries: () => table.entries(),
    report(node) {
      const entry = table.get(node);
      return entry && { report: entry.held.report, ageMs: elapsed() - entry.atMs };
    },
    received() {
      const nowMs = elapsed();
      return new Map(
        [...table].map(([node, { held, atMs, time }]) => [node, { report: held.report, ageMs: nowMs - atMs, time }]),
      );
    },
    forget(isNode) {
      const gone = [...table].flatMap(([node, { atMs }]) =>
        !isNode(node) && elapsed() - atMs > FORGET_AFTER_MS ? [node] : [],
      );
      for (const node of gone) table.delete(node);
      return gone;
    },
  };
};
