import type { Problem } from '@unbounded/topology';
import type { SectionReport, SectionStatus, SectionType } from '../section.port.ts';
import type { AgentReport } from '../world/reporter.port.ts';

interface Reported {
  /** Of its last pass that succeeded; undefined: none has. */
  state?: Omit<SectionReport, 'events' | 'write'>;
  /** Of the passes since. */
  failure?: Problem | undefined;
  /** Of its last write. */
  writeFailure?: Problem | undefined;
}

type Named = Pick<SectionType, 'name' | 'isEssential'>;

/** The reports of all sections as one: of each what it reported last and what has failed since. */
export interface Reports {
  reported(section: string, report: SectionReport): AgentReport;
  /** A pass failed, or the section cannot be opened: what it reported last stands. */
  failed(section: string, problem: Problem): AgentReport;
  /** @param problem undefined: its write succeeded */
  wrote(section: string, problem: Problem | undefined): AgentReport;
}

/** @param onProblems told of those of all sections whenever one reports */
export const createReports = (
  sections: readonly Named[],
  onProblems: (problems: readonly Problem[]) => void = () => undefined,
): Reports => {
  const entries = sections.map((section) => ({ ...section, last: {} as Reported }));
  const of = (section: string): Reported => entries.find(({ name }) => name === section)!.last;
  const awaiting = (): AgentReport['awaiting'] => {
    const missing = entries.filter(({ last }) => last.state === undefined);
    if (missing.length === 0) return undefined;
    return missing.some(({ isEssential }) => isEssential) ? 'essential' : 'others';
  };
  const merge = (events: AgentReport['events'] = []): AgentReport => {
    const states = entries.flatMap(({ last }) => last.state ?? []);
    const statuses = states.flatMap(({ status }) => status ?? []);
    const problems = entries.flatMap(({ last: { state, failure, writeFailure } }) => [
      ...(state?.problems ?? []),
      ...(failure ? [failure] : []),
      ...(writeFailure ? [writeFailure] : []),
    ]);
    onProblems(problems);
    return {
      awaiting: awaiting(),
      problems,
      annotations: Object.assign({}, ...states.map(({ annotations }) => annotations)) as AgentReport['annotations'],
      conditions: states.flatMap(({ conditions = [] }) => conditions),
      events,
      forwarding: states.flatMap(({ forwarding }) => forwarding ?? [])[0],
      status: () => Object.assign({}, ...statuses.map((status) => status())) as SectionStatus,
    };
  };
  return {
    reported(section, report) {
      const { events, write: _, ...state } = report;
      Object.assign(of(section), { state, failure: undefined });
      return merge(events);
    },
    failed(section, failure) {
      of(section).failure = failure;
      return merge();
    },
    wrote(section, writeFailure) {
      of(section).writeFailure = writeFailure;
      return merge();
    },
  };
};
