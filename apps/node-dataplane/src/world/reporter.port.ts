import type { Forwarding } from '@unbounded/status';
import type { Problem } from '@unbounded/topology';
import type { NodeCondition, NodeEvent, SectionStatus } from '../section.port.ts';

/** What the agent tells the world about its node: the reports of all sections. */
export interface AgentReport {
  /**
   * Of which sections no pass has succeeded since the agent started. While an essential one is missing nothing of the Node is written;
   * while others are, conditions that stand and may be theirs stay. Undefined: all have reported.
   */
  readonly awaiting: 'essential' | 'others' | undefined;
  readonly problems: readonly Problem[];
  /** null: not there. They change in one patch; those that the API server refuses keep none of the others from being written. */
  readonly annotations: Readonly<Record<string, string | null>>;
  readonly conditions: readonly NodeCondition[];
  /** Since the last report. */
  readonly events: readonly NodeEvent[];
  /** Of the sections that have one. */
  readonly status: () => SectionStatus;
  /** Reads what the node forwards by; undefined: no section has reported that it can. */
  readonly forwarding?: (() => Promise<Forwarding>) | undefined;
}

export interface Reporter {
  /** Writes what differs from what stands. Failures are tried again with the next report. @throws Error when it aborts */
  report(report: AgentReport, signal?: AbortSignal): Promise<void>;
}
