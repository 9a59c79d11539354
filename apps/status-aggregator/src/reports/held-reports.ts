import { acceptPush, type HeldReport, type ReceivedReport } from '@unbounded/status';
import type { NodeReports, ReportIntake } from '../intake.port.ts';

/** The last report of each node, in memory. */
export interface HeldReports extends ReportIntake, NodeReports {
  /** As of now. */
  received(): ReadonlyMap<string, ReceivedReport>;
  /** Forgets nodes that are none any more, once they have not reported for a while. */
  forget(isNode: (name: string) => boolean): void;
}

export interface ReportClocks {
  /** Milliseconds, monotonic. */
  readonly elapsed: () => number;
  /** What operators read. */
  readonly now: () => Date;
}

interface Entry {
  readonly held: HeldReport;
  readonly atMs: number;
  readonly time: string;
}

/** A Node may be seen later than its agent's first report. */
const FORGET_AFTER_MS = 60_000;

export const createHeldReports = ({ elapsed, now }: ReportClocks): HeldReports => {
  const entries = new Map<string, Entry>();
  return {
    async accept(node, push) {
      const accepted = acceptPush(entries.get(node)?.held, push);
      if (!accepted.ok) return { error: accepted.error };
      if (accepted.value === 'resync') return 'resync';
      entries.set(node, { held: accepted.value, atMs: elapsed(), time: now().toISOString() });
      return 'accepted';
    },
    report(node) {
      const entry = entries.get(node);
      return entry && { report: entry.held.report, ageMs: elapsed() - entry.atMs };
    },
    received() {
      const nowMs = elapsed();
      return new Map(
        [...entries].map(([node, { held, atMs, time }]) => [node, { report: held.report, ageMs: nowMs - atMs, time }]),
      );
    },
    forget(isNode) {
      for (const [node, { atMs }] of entries)
        if (!isNode(node) && elapsed() - atMs > FORGET_AFTER_MS) entries.delete(node);
    },
  };
};
