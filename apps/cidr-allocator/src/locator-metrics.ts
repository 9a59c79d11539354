import type { Metrics } from '@unbounded/telemetry';

import type { LocatorShortage } from './locators.plan.ts';
import { shortageSeries } from './shortage-series.ts';

export interface LocatorMetrics {
  locatorGiven(): void;
  locatorsExhausted(site: string): void;
  /** @param sites those that need locators: their series begin with 0, and end with them */
  locatorState(sites: readonly string[], shortages: readonly LocatorShortage[]): void;
}

const PREFIX = 'unbounded_net_controller_l2_locator';

export const locatorMetrics = (metrics: Metrics): LocatorMetrics => {
  const allocations = metrics.counter({
    name: `${PREFIX}_allocations_total`,
    help: 'Locators of stretched L2 that were written to nodes.',
  });
  const exhaustion = metrics.counter({
    name: `${PREFIX}_exhaustion_total`,
    help: 'Locator exhaustions: times that a Site ran out of free locators, or the prefix out of blocks for the Site.',
    labels: ['site'],
  });
  const waiting = metrics.gauge({
    name: `${PREFIX}_waiting_nodes`,
    help: 'Nodes that wait for a locator because none is free.',
    labels: ['site'],
  });
  return {
    locatorGiven: () => allocations.inc(),
    locatorsExhausted: (site) => exhaustion.inc({ site }),
    locatorState: shortageSeries(exhaustion, waiting),
  };
};
