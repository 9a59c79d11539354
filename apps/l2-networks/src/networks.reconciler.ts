import type { ObjectWrites, Reconcile } from '@unbounded/controller-runtime';
import type { Network } from '@unbounded/crds';
import type { EventRecorder, ResourceClient } from '@unbounded/kube';
import { type L2ClusterSnapshot, type NetworkPlan, planNetworks, planRemovals, type Removal } from '@unbounded/l2';
import type { Logger } from '@unbounded/telemetry';

import { createAbandonedClaims } from './abandoned-claims.ts';
import type { L2Metrics } from './l2-metrics.ts';
import { isFinal, writeNetworks } from './networks.apply.ts';
import { type RemovalOptions, writeRemovals } from './removals.apply.ts';
import { createUnreleasedEndpoints } from './unreleased-endpoints.ts';

export interface NetworksReconcilerOptions {
  /** What the caches hold. */
  readonly snapshot: () => L2ClusterSnapshot;
  readonly clients: RemovalOptions['clients'] & { readonly networks: ResourceClient<Network> };
  readonly writes: ObjectWrites;
  readonly recorder: EventRecorder;
  readonly metrics: L2Metrics;
  readonly logger: Logger;
  /** Monotonic, milliseconds. */
  readonly now?: () => number;
}

/** One key stands for the cluster: a number is free only with a view of all Networks. */
export const networksReconciler = ({
  snapshot,
  clients,
  now = () => performance.now(),
  ...options
}: NetworksReconcilerOptions): Reconcile => {
  const [claims, unreleased] = [createAbandonedClaims(now), createUnreleasedEndpoints(now)];
  const standing = (current: L2ClusterSnapshot): readonly Removal[] => [
    { reason: 'Abandoned', entries: claims.observe(current) },
    ...unreleased.observe(current).map((endpoint) => ({ reason: 'Unreleased', entries: [], endpoint }) as const),
  ];
  /** What a cache does not show yet may have been written by the pass or the leader before, and a number or a finalizer does not come back. */
  const plan = async (current: L2ClusterSnapshot, signal: AbortSignal): Promise<readonly NetworkPlan[]> => {
    const plans = planNetworks(current);
    if (!plans.some(isFinal)) return plans;
    const [networks, endpoints] = await Promise.all([
      clients.networks.listAll({ signal }),
      clients.endpoints.listAll({ signal }),
    ]);
    return planNetworks({ ...current, networks, endpoints });
  };

  return async (_key, signal) => {
    const { writes, recorder, metrics } = options;
    const current = snapshot();
    const plans = await plan(current, signal);
    metrics.planned(plans);
    await writeNetworks(plans, { client: clients.networks, writes, recorder, signal });
    await writeRemovals([...planRemovals(current), ...standing(current)], { ...options, clients, signal });
    const nextMs = Math.min(claims.nextMs() ?? Infinity, unreleased.nextMs() ?? Infinity);
    return writes.verdict(nextMs);
  };
};
