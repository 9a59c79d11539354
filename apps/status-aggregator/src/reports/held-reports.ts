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
  const { get, set, report, received, forget } = createReportTable(elapsed);
  return {
    async accept(node, push) {
      const accepted = acceptPush(get(node)?.held, push);
      if (!accepted.ok) return { error: accepted.error };
      if (accepted.value === 'resync') return 'resync';
      set(node, { held: accepted.value, atMs: elapsed(), time: now().toISOString() });
      return 'accepted';
    },
    report,
    received,
    forget: (isNode) => void forget(isNode),
  };
};
