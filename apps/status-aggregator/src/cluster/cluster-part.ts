import { createInformer, createManager } from '@unbounded/controller-runtime';
import { gatewayPoolKind, siteKind } from '@unbounded/crds';
import type { HostPart } from '@unbounded/host';
import { managerPart } from '@unbounded/host/control-plane';
import { type Cluster, nodes, resourceOf } from '@unbounded/kube';
import type { ViewInputs } from '@unbounded/status';
import type { Logger } from '@unbounded/telemetry';
import { clusterInputs, keptNode } from './cluster-objects.ts';

/** Follows the objects of the cluster that the view is composed from. */
export interface ClusterPart extends HostPart {
  /** Undefined until all of them have been read once. */
  objects(): Omit<ViewInputs, 'reports'> | undefined;
}

export const followCluster = (cluster: Cluster, logger: Logger): ClusterPart => {
  const followed = {
    nodes: createInformer({ client: cluster.client(nodes), logger, trim: keptNode }),
    sites: createInformer({ client: cluster.client(resourceOf(siteKind)), logger }),
    pools: createInformer({ client: cluster.client(resourceOf(gatewayPoolKind)), logger }),
  };
  const seenMs = new Map<string, number>();
  followed.nodes.on(({ type, object }) => {
    if (type === 'added') seenMs.set(object.metadata.name, performance.now());
    if (type === 'deleted') seenMs.delete(object.metadata.name);
  });
  const knownMs = (node: string): number => performance.now() - (seenMs.get(node) ?? performance.now());
  const manager = createManager({ informers: Object.values(followed), controllers: [], logger });
  const part = managerPart('cluster', manager, () => cluster.close());
  return Object.assign(part, {
    objects() {
      if (!manager.isReady) return undefined;
      const { nodes: ofNodes, sites, pools } = followed;
      const objects = { nodes: ofNodes.list(), sites: sites.list(), pools: pools.list() };
      const { lostAtMs } = manager;
      return { ...clusterInputs(objects, knownMs), lostMs: lostAtMs === undefined ? 0 : performance.now() - lostAtMs };
    },
  });
};
