import type { Metrics } from '@unbounded/telemetry';
import type { SectionPass } from '../section.port.ts';

/** Of each section's loop: whether its passes succeed, how long they take, when one last did, and what was planned. */
export const createPassMetrics = (metrics: Metrics, section: string) => {
  const passes = metrics.counter({
    name: 'unbounded_agent_section_passes_total',
    help: 'Reconciliations of a section, by result; a section that cannot be opened is a failure.',
    labels: ['section', 'result'],
  });
  const seconds = metrics.histogram({
    name: 'unbounded_agent_section_pass_duration_seconds',
    help: 'Duration of completed reconciliations of a section.',
    labels: ['section'],
  });
  const lastSuccess = metrics.gauge({
    name: 'unbounded_agent_section_last_success_timestamp_seconds',
    help: 'Unix time of the last successful reconciliation of a section; absent before the first.',
    labels: ['section'],
  });
  const plannedEntries = metrics.gauge({
    name: 'unbounded_agent_plan_entries',
    help: 'Entries of the last plan of a section, by kind.',
    labels: ['section', 'kind'],
  });
  for (const result of ['success', 'failure']) passes.inc({ section, result }, 0);
  let kinds: readonly string[] = [];
  const setPlanned = (planned: Readonly<Record<string, number>>): void => {
    for (const kind of kinds) if (!(kind in planned)) plannedEntries.remove({ section, kind });
    kinds = Object.keys(planned);
    for (const [kind, count] of Object.entries(planned)) plannedEntries.set({ section, kind }, count);
  };
  return {
    /** A pass, counted, with the size of its plan. */
    async measure(pass: () => Promise<SectionPass>): Promise<SectionPass> {
      const startMs = performance.now();
      let result = 'failure';
      try {
        const value = await pass();
        setPlanned(value.planned ?? {});
        result = 'success';
        lastSuccess.set({ section }, Date.now() / 1000);
        return value;
      } finally {
        passes.inc({ section, result });
        seconds.observe({ section }, (performance.now() - startMs) / 1000);
      }
    },
  };
};
