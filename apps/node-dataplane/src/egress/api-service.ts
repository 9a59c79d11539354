import { type Cluster, endpointSlices, services } from '@unbounded/kube';

/** Addresses by which pods reach the API server: those of its Service, and where that leads, since some translate before a packet is sent. */
export interface ApiService {
  addresses(): readonly string[];
  /** Never rejects: what was known stays. */
  refresh(): Promise<void>;
}

/** They change with the cluster's range of Services, and with the machines that API servers run on. */
const REFRESH_MS = 60_000;
/** Of the Service and of its EndpointSlice; the API server makes both. */
const [NAME, NAMESPACE] = ['kubernetes', 'default'];

export interface ApiServiceParts {
  readonly cluster: Cluster | undefined;
  /** As last known. */
  readonly before: readonly string[];
  /** The API server has answered. */
  readonly onHeard: () => void;
}

export const createApiService = ({ cluster, before, onHeard }: ApiServiceParts): ApiService => {
  let known = before;
  let endpoints: readonly string[] = [];
  let askedMs = -Infinity;
  let asking: Promise<void> | undefined;
  const ask = async (from: Cluster): Promise<void> => {
    const [service, slice] = await Promise.allSettled([
      from.client(services).get(NAME, { namespace: NAMESPACE }),
      from.client(endpointSlices).get(NAME, { namespace: NAMESPACE }),
    ]);
    if (service.status === 'rejected') return; // not now: the next pass asks again
    if (slice.status === 'fulfilled') endpoints = (slice.value.endpoints ?? []).flatMap(({ addresses }) => addresses);
    known = [...new Set([...(service.value.spec?.clusterIPs ?? []), ...endpoints])].sort();
    askedMs = performance.now();
    onHeard();
  };
  return {
    addresses: () => known,
    async refresh() {
      if (!cluster || performance.now() - askedMs < REFRESH_MS) return;
      asking ??= ask(cluster).finally(() => (asking = undefined));
      await asking;
    },
  };
};
