import type { KindDefinition } from '@unbounded/crds';

import type { ResourceClient } from './client.ts';
import type { KubeObject, Resource } from './objects.ts';
import { crds, events, leases, nodes, resourceOf } from './resources.ts';
import type { Transport } from './transport.ts';

/** One API server and clients for what it serves. */
export interface Cluster {
  readonly transport: Transport;
  client<T extends KubeObject>(resource: Resource<T>): ResourceClient<T>;
  close(): void;
}

export const clientOf = <D extends KindDefinition>(cluster: Cluster, definition: D) =>
  cluster.client(resourceOf(definition));

/** The clients that nearly every program needs. */
export const coreClients = (cluster: Cluster) => ({
  nodes: cluster.client(nodes),
  leases: cluster.client(leases),
  events: cluster.client(events),
  crds: cluster.client(crds),
});
