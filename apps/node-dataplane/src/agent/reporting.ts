import type { Logger } from '@unbounded/telemetry';
import type { Problem } from '@unbounded/topology';
import type { SectionReport, SectionType } from '../section.port.ts';
import type { AgentReport, Reporter } from '../world/reporter.port.ts';
import { createReportLoop } from './report-loop.ts';
import { createReports } from './reports.ts';
import { createWriteLoop, type WriteLoop } from './write-loop.ts';

/** Where a section's reports go: its part of the Node with those of all others in one loop, what else it writes in its own. */
export interface SectionReporting {
  submit(report: SectionReport): void;
  /** A pass failed, or the section cannot be opened. */
  fail(problem: Problem): void;
}

export interface Reporting {
  /** @param trigger asks the section for a new report */
  of(section: string, trigger: () => void): SectionReporting;
  /** Gives up what is under way. */
  stop(): Promise<void>;
}

export interface ReportingOptions {
  readonly reporter: Reporter;
  readonly logger: Logger;
  /** Told of the problems of all sections whenever one reports. */
  readonly onProblems?: (problems: readonly Problem[]) => void;
  /** Told of each report of all sections. */
  readonly onReport?: (report: AgentReport) => void;
}

const reportFailed = (section: string, message: string): Problem => ({
  reason: 'SectionReportFailed',
  message: `section ${section}: cannot write what it reports: ${message}: the agent retries, and forwarding continues`,
});

export const createReporting = (
  types: readonly Pick<SectionType, 'name' | 'isEssential'>[],
  { reporter, logger, onProblems, onReport = () => undefined }: ReportingOptions,
): Reporting => {
  const reports = createReports(types, onProblems);
  const loop = createReportLoop({ reporter, logger });
  const writers: WriteLoop[] = [];
  const submit = (report: AgentReport): void => {
    loop.submit(report);
    onReport(report);
  };
  return {
    of(section, trigger) {
      const onError = (message: string | undefined): void =>
        submit(reports.wrote(section, message === undefined ? undefined : reportFailed(section, message)));
      const writer = createWriteLoop({ section, trigger, onError, logger });
      writers.push(writer);
      return {
        submit(report) {
          submit(reports.reported(section, report));
          writer.submit(report.write);
        },
        fail: (problem) => submit(reports.failed(section, problem)),
      };
    },
    async stop() {
      await Promise.all([loop.stop(), ...writers.map((writer) => writer.stop())]);
    },
  };
};
