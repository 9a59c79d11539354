import { RELAY_SERVICE } from '@unbounded/config/ownership';
import { type Cluster, endpointSlices, ignoreGone, isNotFound, type Node, nodes, services } from '@unbounded/kube';
import type { ManagedRelay } from '@unbounded/relay-client';

/** Nodes that are looked at for a public address: every agent asks. */
const MOST_NODES = 16;

/** Our own node only where there is no other: what we send to its own address may be led to relays elsewhere, over the mesh. */
const preferOthers = (hosts: readonly Node[], self: string): readonly Node[] => {
  const others = hosts.filter(({ metadata }) => metadata.name !== self);
  return others.length > 0 ? others : hosts;
};

/**
 * The objects by which the managed relay is found: by the API server, never by the cluster's DNS, which may need the mesh. A
 * node port answers where a relay runs: elsewhere its packets would have to take the mesh that the relay is to carry.
 */
export const readManagedRelay =
  (cluster: Cluster, namespace: string, nodeName: string) => async (): Promise<ManagedRelay> => {
    const service = await cluster
      .client(services)
      .get(RELAY_SERVICE, { namespace })
      .catch((error: unknown) => {
        if (isNotFound(error)) return undefined;
        throw error;
      });
    if (!service?.spec?.ports?.some(({ nodePort }) => nodePort)) return { service, nodes: [] };
    const labelSelector = `kubernetes.io/service-name=${RELAY_SERVICE}`;
    const slices = await cluster.client(endpointSlices).listAll({ namespace, labelSelector });
    const ready = slices
      .flatMap(({ endpoints }) => endpoints ?? [])
      .flatMap(({ nodeName: node, conditions }) => (node !== undefined && conditions?.ready !== false ? [node] : []));
    const names = [...new Set(ready)].sort().slice(0, MOST_NODES);
    const hosts = await Promise.all(names.map((name) => cluster.client(nodes).get(name).catch(ignoreGone)));
    const found = hosts.flatMap((node): Node[] => (node ? [node] : []));
    return { service, nodes: preferOthers(found, nodeName), self: nodeName };
  };
