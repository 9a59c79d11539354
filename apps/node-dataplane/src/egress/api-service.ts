import { type Cluster, services } from '@unbounded/kube';

/** Addresses of the Service by which pods reach the API server. */
export interface ApiService {
  addresses(): readonly string[];
  /** Never rejects: what was known stays. */
  refresh(): Promise<void>;
}

/** It changes with the cluster's range of Services alone. */
const REFRESH_MS = 60_000;

/** @param before as last known */
export const createApiService = (cluster: Cluster | undefined, before: readonly string[]): ApiService => {
  const client = cluster?.client(services);
  let known = before;
  let askedMs = -Infinity;
  return {
    addresses: () => known,
    async refresh() {
      if (!client || performance.now() - askedMs < REFRESH_MS) return;
      try {
        const { spec } = await client.get('kubernetes', { namespace: 'default' });
        known = spec?.clusterIPs ?? [];
        askedMs = performance.now();
      } catch {
        // not now: the next pass asks again
      }
    },
  };
};
