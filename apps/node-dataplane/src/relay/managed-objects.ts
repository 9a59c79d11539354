import { RELAY_SERVICE } from '@unbounded/config/ownership';
import { type Cluster, isNotFound, nodes, services } from '@unbounded/kube';
import type { ManagedRelay } from '@unbounded/relay-client';

/** Nodes that are looked at for one with a public address: relays need few, and every agent asks. */
const MOST_NODES = 200;

/** The objects by which the managed relay is found: by the API server, never by the cluster's DNS, which may need the mesh. */
export const readManagedRelay =
  (cluster: Cluster, namespace: string, nodeName: string) => async (): Promise<ManagedRelay> => {
    const client = cluster.client(services);
    const service = await client.get(RELAY_SERVICE, { namespace }).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
    const named = [service?.spec?.externalIPs, service?.status?.loadBalancer?.ingress].some((ways) => ways?.length);
    // Only a NodePort needs them.
    const page = service && !named ? await cluster.client(nodes).list({ limit: MOST_NODES }) : undefined;
    return { service: service as ManagedRelay['service'], nodes: page?.items ?? [], self: nodeName };
  };
