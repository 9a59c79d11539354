import type { NodeReport } from '@unbounded/status';
import type { AgentReport } from '../world/reporter.port.ts';
import manifest from '../../package.json' with { type: 'json' };

/** The node's report to the status aggregator, from those of its sections. */

/** As many as a report may have of what people read. */
const MOST_PROBLEMS = 200;
const LONGEST_MESSAGE = 2048;

export const nodeReportOf = (report: AgentReport, drops: Readonly<Record<string, number>>): NodeReport => ({
  agentVersion: manifest.version,
  isComplete: report.awaiting === undefined,
  problems: report.problems
    .slice(0, MOST_PROBLEMS)
    .map(({ reason, message }) => ({ reason, message: message.slice(0, LONGEST_MESSAGE) })),
  drops: { ...drops },
  ...report.status(),
});
