import type { NodeReport } from '../report/node-report.ts';

/** What a view is composed from: the objects of the cluster, and what nodes have reported. */

export interface ClusterSite {
  readonly name: string;
}

export interface ClusterPool {
  readonly name: string;
  readonly gateways: readonly string[];
  readonly connectedSites: readonly string[];
}

export interface ClusterNode {
  readonly name: string;
  /** As site-membership labelled it. */
  readonly site?: string;
  readonly ready: 'True' | 'False' | 'Unknown';
  /** Conditions by which its agent says that something is wrong: what is known of a node that cannot reach the aggregator. */
  readonly faults: readonly { readonly reason: string; readonly message: string }[];
  /** Since the observer saw it first, milliseconds: a node that has just come has had no time to report. */
  readonly knownMs: number;
}

export interface ReceivedReport {
  readonly report: NodeReport;
  /** By a monotonic clock of the receiver. */
  readonly ageMs: number;
  /** RFC 3339. */
  readonly time: string;
}

export interface ViewInputs {
  readonly sites: readonly ClusterSite[];
  readonly pools: readonly ClusterPool[];
  readonly nodes: readonly ClusterNode[];
  readonly reports: ReadonlyMap<string, ReceivedReport>;
  /** For how long the objects could not be read anew, milliseconds. */
  readonly lostMs?: number;
}

/** A restart of an API server is shorter. */
const LOST_MS = 15_000;

/** Whether the objects may be others by now. */
export const isLost = ({ lostMs = 0 }: Pick<ViewInputs, 'lostMs'>): boolean => lostMs >= LOST_MS;

/** Two pushes of 10 s were missed, and the next one is late. */
const STALE_MS = 25_000;

/** A report that counts. */
export const freshReport = ({ reports }: ViewInputs, node: string): NodeReport | undefined => {
  const received = reports.get(node);
  return received && received.ageMs < STALE_MS ? received.report : undefined;
};

/** It had the time to report, and does not. */
export const isOverdue = (inputs: ViewInputs, { name, knownMs }: ClusterNode): boolean =>
  knownMs >= STALE_MS && !freshReport(inputs, name);
