import { type Cluster, services } from '@unbounded/kube';

/** Addresses of the Service by which pods reach the API server. */
export interface ApiService {
  addresses(): readonly string[];
  /** Never rejects: what was known stays. */
  refresh(): Promise<void>;
}

/** It changes with the cluster's range of Services alone. */
const REFRESH_MS = 60_000;

export interface ApiServiceParts {
  readonly cluster: Cluster | undefined;
  /** As last known. */
  readonly before: readonly string[];
  /** The API server has answered. */
  readonly onHeard: () => void;
}

export const createApiService = ({ cluster, before, onHeard }: ApiServiceParts): ApiService => {
  const client = cluster?.client(services);
  let known = before;
  let askedMs = -Infinity;
  let asking: Promise<void> | undefined;
  const ask = async (): Promise<void> => {
    try {
      const answer = await client?.get('kubernetes', { namespace: 'default' });
      known = answer?.spec?.clusterIPs ?? [];
      askedMs = performance.now();
      onHeard();
    } catch {
      // not now: the next pass asks again
    }
  };
  return {
    addresses: () => known,
    async refresh() {
      if (!client || performance.now() - askedMs < REFRESH_MS) return;
      asking ??= ask().finally(() => (asking = undefined));
      await asking;
    },
  };
};
