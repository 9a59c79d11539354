import type { Problem } from '@unbounded/topology';
import type { NodeCondition, NodeEvent } from '../section.port.ts';

/** What the agent tells the world about its node: the reports of all sections. */
export interface AgentReport {
  readonly problems: readonly Problem[];
  /** null: not there. They change together, in one patch. */
  readonly annotations: Readonly<Record<string, string | null>>;
  readonly conditions: readonly NodeCondition[];
  /** Since the last report. */
  readonly events: readonly NodeEvent[];
  readonly writes: readonly ((signal: AbortSignal) => Promise<void>)[];
}

export interface Reporter {
  /** Writes what differs from what stands. Failures are tried again with the next report. @throws Error when it aborts */
  report(report: AgentReport, signal?: AbortSignal): Promise<void>;
}
