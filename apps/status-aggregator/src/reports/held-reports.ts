import { acceptPush, type ReceivedReport } from '@unbounded/status';
import type { NodeReports, ReportIntake } from '../intake.port.ts';
import { createReportTable } from './report-table.ts';

/** The last report of each node. */
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

/** Those of one replica, in memory. */
export const createHeldReports = ({ elapsed, now }: ReportClocks): HeldReports => {
  const table = createReportTable(elapsed);
  return {
    async accept(node, push) {
      const accepted = acceptPush(table.get(node)?.held, push);
      if (!accepted.ok) return { error: accepted.error };
      if (accepted.value === 'resync') return 'resync';
      table.set(node, { held: accepted.value, atMs: elapsed(), time: now().toISOString() });
      return 'accepted';
    },
    report: (node) => table.report(node),
    received: () => table.received(),
    forget: (isNode) => void table.forget(isNode),
  };
};
