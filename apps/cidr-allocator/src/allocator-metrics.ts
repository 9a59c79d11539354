import type { Metrics } from '@unbounded/telemetry';

import type { Exhaustion } from './allocation.plan.ts';
import { type LocatorMetrics, locatorMetrics } from './locator-metrics.ts';

export interface AllocatorMetrics extends LocatorMetrics {
  allocated(): void;
  exhausted(site: string): void;
  state(exhaustions: readonly Exhaustion[], conflicts: number): void;
}

const PREFIX = 'unbounded_net_controller_pod_cidr';

export const allocatorMetrics = (metrics: Metrics): AllocatorMetrics => {
  const allocations = metrics.counter({
    name: `${PREFIX}_allocations_total`,
    help: 'Nodes to which pod CIDRs were allocated.',
  });
  const exhaustion = metrics.counter({
    name: `${PREFIX}_exhaustion_total`,
    help: 'Pod CIDR exhaustions: times that an assignment of a Site ran out of free blocks.',
    labels: ['site'],
  });
  const waiting = metrics.gauge({
    name: `${PREFIX}_waiting_nodes`,
    help: 'Nodes that wait for pod CIDRs because no block is free.',
    labels: ['site'],
  });
  const conflicts = metrics.gauge({ name: `${PREFIX}_conflicts`, help: 'Pairs of nodes whose pod CIDRs overlap.' });
  return {
    allocated: () => allocations.inc(),
    exhausted: (site) => exhaustion.inc({ site }),
    state: (exhaustions, conflictCount) => {
      waiting.reset();
      for (const { site, nodes } of exhaustions) waiting.inc({ site }, nodes.length);
      conflicts.set(conflictCount);
    },
    ...locatorMetrics(metrics),
  };
};
