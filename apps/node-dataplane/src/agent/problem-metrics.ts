import type { Metrics } from '@unbounded/telemetry';
import type { Problem } from '@unbounded/topology';

/** @returns to be told of the problems of all sections; a reason that is none any more has no series */
export const createProblemMetrics = (metrics: Metrics): ((problems: readonly Problem[]) => void) => {
  const gauge = metrics.gauge({
    name: 'unbounded_agent_problems',
    help: 'Problems that the node’s agent reports in conditions of its Node, by reason; a reason that is none any more has no series.',
    labels: ['reason'],
  });
  return (problems) => {
    gauge.reset();
    for (const { reason } of problems) gauge.inc({ reason });
  };
};
