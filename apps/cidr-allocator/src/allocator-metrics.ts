import type { Metrics } from '@unbounded/telemetry';

import type { Exhaustion } from './allocation.plan.ts';
import { type LocatorMetrics, locatorMetrics } from './locator-metrics.ts';
import { shortageSeries } from './shortage-series.ts';

export interface AllocatorMetrics extends LocatorMetrics {
  allocated(): void;
  exhausted(site: string): void;
  /** @param sites all that there are: their series begin with 0, and end with them */
  state(sites: readonly string[], exhaustions: readonly Exhaustion[], conflicts: number): void;
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
  const showShortages = shortageSeries(exhaustion, waiting);
  const conflicts = metrics.gauge({ name: `${PREFIX}_conflicts`, help: 'Pairs of nodes whose pod CIDRs overlap.' });
  return {
    allocated: () => allocations.inc(),
    exhausted: (site) => exhaustion.inc({ site }),
    state: (sites, exhaustions, conflictCount) => {
      showShortages(sites, exhaustions);
      conflicts.set(conflictCount);
    },
    ...locatorMetrics(metrics),
  };
};
