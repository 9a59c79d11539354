import { type Metrics } from '@unbounded/telemetry';

import { type PoolPlan } from './gateways.plan.ts';

export interface GatewayMetrics {
  state(pools: readonly PoolPlan[]): void;
}

const PREFIX = 'unbounded_net_controller_gateway_pool';

export const gatewayMetrics = (metrics: Metrics): GatewayMetrics => {
  const labels = ['pool'] as const;
  const nodes = metrics.gauge({ name: `${PREFIX}_nodes_total`, help: 'Gateways of a pool.', labels });
  const sites = metrics.gauge({
    name: `${PREFIX}_reachable_sites_total`,
    help: 'Sites to which a gateway of a pool has a route: GatewayPool status.reachableSites.',
    labels,
  });
  const outsiders = metrics.gauge({
    name: `${PREFIX}_ineligible_nodes`,
    help: 'Nodes that a pool selects and that cannot be its gateways.',
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
