import type { NetworkPlan } from '@unbounded/l2';
import type { Metrics } from '@unbounded/telemetry';

export interface L2Metrics {
  planned(plans: readonly NetworkPlan[]): void;
  removed(kind: string): void;
}

const PREFIX = 'unbounded_l2';

export const l2Metrics = (metrics: Metrics): L2Metrics => {
  const networks = metrics.gauge({
    name: `${PREFIX}_networks`,
    help: 'Networks, by the status of their condition Ready.',
    labels: ['ready'],
  });
  const endpoints = metrics.gauge({
    name: `${PREFIX}_endpoints`,
    help: 'NetworkEndpoints of a Network.',
    labels: ['network'],
  });
  const removed = metrics.counter({
    name: `${PREFIX}_orphans_removed_total`,
    help: 'NetworkEndpoints and entries that were removed because their Node, Pod or endpoint is gone, or because no node bound them, by kind.',
    labels: ['kind'],
  });
  return {
    removed: (kind) => removed.inc({ kind }),
    planned: (plans) => {
      for (const gauge of [networks, endpoints]) gauge.reset();
      for (const { network, fields, conditions } of plans) {
        endpoints.set({ network: network.metadata.name }, fields.endpoints);
        networks.inc({ ready: conditions.find(({ type }) => type === 'Ready')!.status });
      }
    },
  };
};
