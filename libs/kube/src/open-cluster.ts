import type { Metrics } from '@unbounded/telemetry';

import { createClient } from './client.ts';
import type { Cluster } from './cluster.ts';
import { type Connection, connect } from './connection.ts';
import { createTransport, type RequestObserver } from './transport.ts';

/** An entry of its own (`@unbounded/kube/open-cluster`): client-node, which reads kubeconfigs, takes half a second to load. */

const measureRequests = (metrics: Metrics): RequestObserver => {
  const requests = metrics.counter({
    name: 'rest_client_requests_total',
    help: 'Number of HTTP requests, partitioned by status code, method, and host.',
    labels: ['code', 'method', 'host'],
  });
  const seconds = metrics.histogram({
    name: 'rest_client_request_duration_seconds',
    help: 'Request latency in seconds. Broken down by verb, and host.',
    labels: ['verb', 'host'],
  });
  return ({ method, code, host }, tookMs) => {
    requests.inc({ code, method, host });
    seconds.observe({ verb: method, host }, tookMs / 1000);
  };
};

export interface ClusterOptions {
  /** A kubeconfig file; see {@link connect} for what happens without one. */
  readonly kubeconfig?: string | undefined;
  readonly connection?: Connection;
  readonly metrics?: Metrics;
}

export const openCluster = ({ kubeconfig, connection, metrics }: ClusterOptions = {}): Cluster => {
  const transport = createTransport(connection ?? connect(kubeconfig), metrics && measureRequests(metrics));
  return {
    transport,
    client: (resource) => createClient(transport, resource),
    close: () => transport.close(),
  };
};
