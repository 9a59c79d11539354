import type { Cluster } from '@unbounded/kube';

import { EGRESS_RESOURCES, type EgressObjects, SENDING_PODS } from '../cluster/egress-objects.ts';

/** All objects as the API server has them now. */
export const readCluster = async (cluster: Cluster): Promise<EgressObjects> => {
  const [rules, clusterRules, pools, slices, nodes, pods, services, namespaces, sites] = await Promise.all([
    cluster.client(EGRESS_RESOURCES.rules).listAll(),
    cluster.client(EGRESS_RESOURCES.clusterRules).listAll(),
    cluster.client(EGRESS_RESOURCES.pools).listAll(),
    cluster.client(EGRESS_RESOURCES.slices).listAll(),
    cluster.client(EGRESS_RESOURCES.nodes).listAll(),
    cluster.client(EGRESS_RESOURCES.pods).listAll(SENDING_PODS),
    cluster.client(EGRESS_RESOURCES.services).listAll(),
    cluster.client(EGRESS_RESOURCES.namespaces).listAll(),
    cluster.client(EGRESS_RESOURCES.sites).listAll(),
  ]);
  return { rules, clusterRules, pools, slices, nodes, pods, services, namespaces, sites };
};
