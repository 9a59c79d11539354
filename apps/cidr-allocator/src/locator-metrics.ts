import type { Metrics } from '@unbounded/telemetry';

import type { LocatorShortage } from './locators.plan.ts';

export interface LocatorMetrics {
  locatorGiven(): void;
  locatorsExhausted(site: string): void;
  locatorState(shortages: readonly LocatorShortage[]): void;
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
    locatorState: (shortages) => {
      waiting.reset();
      for (const { site, nodes } of shortages) waiting.inc({ site }, nodes.length);
    },
  };
};
