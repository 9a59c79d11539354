import type { Metrics } from '@unbounded/telemetry';

/** Of each section's loop: whether its passes succeed, how long they take, and when one last did. */
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
  for (const result of ['success', 'failure']) passes.inc({ section, result }, 0);
  return {
    /** A pass, counted. */
    async measure<T>(pass: () => Promise<T>): Promise<T> {
      const startMs = performance.now();
      let result = 'failure';
      try {
        const value = await pass();
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
