import { type KindDefinition } from '@unbounded/crds';
import { type Metrics } from '@unbounded/telemetry';

import { createClient, type ResourceClient } from './client.ts';
import { type Connection, connect } from './connection.ts';
import { type KubeObject, type Resource } from './objects.ts';
import { crds, events, leases, nodes, resourceOf } from './resources.ts';
import { createTransport, type RequestObserver, type Transport } from './transport.ts';

/** One API server and clients for what it serves. */
export interface Cluster {
  readonly transport: Transport;
  client<T extends KubeObject>(resource: Resource<T>): ResourceClient<T>;
  close(): void;
}

const countRequests = (metrics: Metrics): RequestObserver => {
  const requests = metrics.counter({
    name: 'rest_client_requests_total',
    help: 'Number of HTTP requests, partitioned by status code, method, and host.',
    labels: ['code', 'method', 'host'],
  });
  return (labels) => requests.inc(labels);
};

export interface ClusterOptions {
  /** A kubeconfig file; see {@link connect} for what happens without one. */
  readonly kubeconfig?: string | undefined;
  readonly connection?: Connection;
  readonly metrics?: Metrics;
}

export const openCluster = ({ kubeconfig, connection, metrics }: ClusterOptions = {}): Cluster => {
  const transport = createTransport(connection ?? connect(kubeconfig), metrics && countRequests(metrics));
  return {
    transport,
    client: (resource) => createClient(transport, resource),
    close: () => transport.close(),
  };
};

export const clientOf = <D extends KindDefinition>(cluster: Cluster, definition: D) =>
  cluster.client(resourceOf(definition));

/** The clients that nearly every program needs. */
export const coreClients = (cluster: Cluster) => ({
  nodes: cluster.client(nodes),
  leases: cluster.client(leases),
  events: cluster.client(events),
  crds: cluster.client(crds),
});
