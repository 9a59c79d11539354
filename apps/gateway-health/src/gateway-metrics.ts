import type { Metrics } from '@unbounded/telemetry';

import type { PoolPlan } from './gateways.plan.ts';

export interface GatewayMetrics {
  state(pools: readonly PoolPlan[], dampedCount: number): void;
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
  const damped = metrics.gauge({
    name: 'unbounded_net_controller_damped_nodes',
    help: 'Nodes that change too often: their changes are taken over late, at most one a minute.',
  });
  return {
    state: (pools, dampedCount) => {
      damped.set(dampedCount);
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
