import type { SectionReport } from '../section.port.ts';
import type { AgentReport } from '../world/reporter.port.ts';

/** The reports of all sections as one: of each the latest, with the events of all since they were last taken. */
export const createReports = (sections: readonly string[]) => {
  const latest = new Map<string, SectionReport>();
  return {
    latest: (section: string): SectionReport | undefined => latest.get(section),
    /** The report of a section, with what the others reported last. */
    merge(section: string, report: SectionReport): AgentReport {
      const { events = [], ...state } = report;
      latest.set(section, state);
      const all = sections.flatMap((name) => latest.get(name) ?? []);
      return {
        problems: all.flatMap(({ problems }) => problems),
        annotations: Object.assign({}, ...all.map(({ annotations }) => annotations)) as AgentReport['annotations'],
        conditions: all.flatMap(({ conditions = [] }) => conditions),
        events,
        writes: all.flatMap(({ write }) => write ?? []),
      };
    },
  };
};
