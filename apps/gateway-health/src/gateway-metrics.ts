import { type Metrics } from '@unbounded/telemetry';

import { type PoolPlan } from './gateways.plan.ts';

export interface GatewayMetrics {
  state(pools: readonly PoolPlan[]): void;
}

const PREFIX = 'unbounded_net_controller_gateway_pool';

export const gatewayMetrics = (metrics: Metrics): GatewayMetrics => {
  const labels = ['pool'] as const;
  const nodes = metrics.gauge({ name: `${PREFIX}_nodes`, help: 'Gateways of a GatewayPool.', labels });
  const sites = metrics.gauge({
    name: `${PREFIX}_reachable_sites`,
    help: 'Sites to which a gateway of a GatewayPool has a route: its status.reachableSites.',
    labels,
  });
  const outsiders = metrics.gauge({
    name: `${PREFIX}_ineligible_nodes`,
    help: 'Nodes that a GatewayPool selects and that are not eligible as its gateways.',
    labels,
  });
  return {
    state: (pools) => {
      for (const gauge of [nodes, sites, outsiders]) gauge.reset();
      for (const plan of pools) {
        const pool = plan.pool.metadata.name;
        nodes.set({ pool }, plan.gateways.length);
        sites.set({ pool }, plan.reachableSites.length);
        outsiders.set({ pool }, plan.outsiders.length);
      }
    },
  };
};
