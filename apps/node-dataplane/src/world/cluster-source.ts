import { createInformer, type Informer } from '@unbounded/controller-runtime';
import {
  gatewayPoolKind,
  gatewayPoolPeeringKind,
  meshKind,
  siteGatewayPoolAssignmentKind,
  siteKind,
  siteNodeSliceKind,
  sitePeeringKind,
} from '@unbounded/crds';
import { type Cluster, clientOf, type KubeObject, type Node, nodes } from '@unbounded/kube';
import type { Logger } from '@unbounded/telemetry';
import type { TopologyObjects } from '@unbounded/topology';
import { nodeFactsOf } from './object-files.ts';
import type { Snapshot, WorldSource } from './source.port.ts';

/** Objects from the API server, followed by informers; the Node is only our own. */
export interface ClusterSource extends WorldSource {
  /** Our Node as last seen. */
  node(): Node | undefined;
}

export const createClusterSource = (cluster: Cluster, nodeName: string, logger: Logger): ClusterSource => {
  const abort = new AbortController();
  const handlers: (() => void)[] = [];
  let version = 0;
  const running: Promise<void>[] = [];
  const informers: Informer<KubeObject>[] = [];

  const follow = <T extends KubeObject>(informer: Informer<T>): Informer<T> => {
    informers.push(informer);
    informer.on(() => {
      version++;
      if (informers.every(({ isSynced }) => isSynced)) for (const handler of handlers) handler();
    });
    running.push(informer.run(abort.signal));
    return informer;
  };
  const ourKind = <D extends Parameters<typeof clientOf>[1]>(definition: D) =>
    follow(createInformer({ client: clientOf(cluster, definition), logger }));

  const lists = {
    sites: ourKind(siteKind),
    slices: ourKind(siteNodeSliceKind),
    gatewayPools: ourKind(gatewayPoolKind),
    sitePeerings: ourKind(sitePeeringKind),
    assignments: ourKind(siteGatewayPoolAssignmentKind),
    poolPeerings: ourKind(gatewayPoolPeeringKind),
    meshes: ourKind(meshKind),
  } satisfies Record<keyof TopologyObjects, unknown>;
  const own = follow(
    createInformer({ client: cluster.client(nodes), logger, filter: { fieldSelector: `metadata.name=${nodeName}` } }),
  );

  // Empty kinds tell of no change when they are first listed: the end of the first listing is one in itself.
  void Promise.all(informers.map(({ synced }) => synced)).then(() => {
    version++;
    for (const handler of handlers) handler();
  });

  return {
    snapshot: (): Snapshot | undefined => {
      if (!informers.every(({ isSynced }) => isSynced)) return undefined;
      const objects = Object.fromEntries(Object.entries(lists).map(([name, informer]) => [name, informer.list()]));
      const node = own.get(nodeName);
      return {
        objects: objects as unknown as TopologyObjects,
        node: node && nodeFactsOf(node),
        version,
      };
    },
    node: () => own.get(nodeName),
    onChange: (handler) => void handlers.push(handler),
    stop: async () => {
      abort.abort();
      await Promise.allSettled(running);
    },
  };
};
