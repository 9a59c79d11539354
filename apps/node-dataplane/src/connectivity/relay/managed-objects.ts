import { RELAY_SERVICE } from '@unbounded/config/ownership';
import { createInformer } from '@unbounded/controller-runtime';
import { type Cluster, endpointSlices, readyEndpoints, ignoreGone, type Node, nodes, services } from '@unbounded/kube';
import { type GatewayLike, type ManagedRelay, publicAddresses } from '@unbounded/relay-client';
import type { Logger } from '@unbounded/telemetry';
import type { ManagedRelaySource } from './relay-services.ts';

/** Of the Service and its slices. */
const RELAY_PORT_NAME = 'relay';
/** Nodes that are looked at: every agent asks. */
const MOST_NODES = 16;

const OF_RELAY = `kubernetes.io/service-name=${RELAY_SERVICE}`;

export interface RelayPlace {
  /** The one in which gateway-health runs the relay. */
  readonly namespace: string;
  readonly nodeName: string;
  /** Of all pools, as the agent follows them. */
  readonly gateways: () => readonly GatewayLike[];
}

/**
 * The objects by which the managed relay is found: by the API server, never by the cluster's DNS, which may need the mesh. A
 * node port answers where a relay runs: elsewhere its packets would have to take the mesh that the relay is to carry.
 */
const readManagedRelay = (cluster: Cluster, place: RelayPlace) => async (): Promise<ManagedRelay> => {
  const { namespace, nodeName } = place;
  const gateways = place.gateways();
  const service = await cluster.client(services).get(RELAY_SERVICE, { namespace }).catch(ignoreGone);
  const { ports = [], externalIPs = [] } = service?.spec ?? {};
  const isByNodes = externalIPs.length > 0 || ports.some(({ nodePort }) => nodePort);
  if (!isByNodes) return { service, nodes: [], gateways };
  const slices = await cluster.client(endpointSlices).listAll({ namespace, labelSelector: OF_RELAY });
  const ready = readyEndpoints(slices).flatMap(({ nodeName: node, addresses, ports }) =>
    node === undefined ? [] : [{ node, addresses, ports }],
  );
  const addresses = publicAddresses(gateways);
  const names = [...new Set(ready.map(({ node }) => node))]
    .filter((name) => name === nodeName || addresses.has(name))
    .sort()
    .slice(0, MOST_NODES);
  const hosts = await Promise.all(names.map((name) => cluster.client(nodes).get(name).catch(ignoreGone)));
  const onSelf = ready
    .filter(({ node }) => node === nodeName)
    .flatMap(({ addresses, ports }) => {
      const port = ports.find(({ name }) => name === RELAY_PORT_NAME)?.port;
      return port === undefined ? [] : addresses.map((host) => ({ host, port, isTls: false }));
    });
  return { service, nodes: hosts.flatMap((node): Node[] => (node ? [node] : [])), gateways, self: nodeName, onSelf };
};

export const managedRelaySource = (
  cluster: Cluster,
  { logger, ...place }: RelayPlace & { readonly logger: Logger },
): ManagedRelaySource => ({
  read: readManagedRelay(cluster, place),
  watch: (onChange) => {
    const abort = new AbortController();
    const followed = [
      createInformer({
        client: cluster.client(services),
        logger,
        filter: { namespace: place.namespace, fieldSelector: `metadata.name=${RELAY_SERVICE}` },
      }),
      createInformer({
        client: cluster.client(endpointSlices),
        logger,
        filter: { namespace: place.namespace, labelSelector: OF_RELAY },
      }),
    ];
    for (const informer of followed) {
      informer.on(onChange);
      void informer.run(abort.signal);
    }
    return () => abort.abort();
  },
});
