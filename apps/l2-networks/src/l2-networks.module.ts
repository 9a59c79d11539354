import type { ConfigOf, controlPlaneOptions } from '@unbounded/config';
import { createController, createObjectWrites, watches } from '@unbounded/controller-runtime';
import { hostModule, type HostPart, type HostServices } from '@unbounded/host';
import { type ControlPlane, openControlPlane } from '@unbounded/host/control-plane';
import type { L2ClusterSnapshot } from '@unbounded/l2';

import { l2Metrics } from './l2-metrics.ts';
import { clientsOf, entryPrint, keptNode, keptPod, L2_RESOURCES, nodePrint, podPrint } from './l2-objects.ts';
import { networksReconciler } from './networks.reconciler.ts';

type L2NetworksConfig = ConfigOf<typeof controlPlaneOptions>;

const WHOLE_CLUSTER = () => ['cluster'];
/** Pods of a Deployment come within moments of each other, and all entries of a node that is gone are one plan. */
const GATHER_MS = 50;

const openInformers = (plane: ControlPlane) => ({
  networks: plane.informer(L2_RESOURCES.networks),
  endpoints: plane.informer(L2_RESOURCES.endpoints),
  fdbEntries: plane.informer(L2_RESOURCES.fdbEntries),
  neighbors: plane.informer(L2_RESOURCES.neighbors),
  nodes: plane.informer(L2_RESOURCES.nodes, { trim: keptNode }),
  pods: plane.informer(L2_RESOURCES.pods, { trim: keptPod }),
});
type L2Informers = ReturnType<typeof openInformers>;

const snapshotOf = (informers: L2Informers): L2ClusterSnapshot => ({
  isComplete: Object.values(informers).every(({ isSynced }) => isSynced),
  networks: informers.networks.list(),
  endpoints: informers.endpoints.list(),
  fdbEntries: informers.fdbEntries.list(),
  neighbors: informers.neighbors.list(),
  nodes: informers.nodes.list(),
  pods: informers.pods.list(),
});

const sourcesOf = ({ networks, endpoints, fdbEntries, neighbors, nodes, pods }: L2Informers) => [
  watches(networks, { keysOf: WHOLE_CLUSTER }),
  watches(endpoints, { keysOf: WHOLE_CLUSTER }),
  watches(fdbEntries, { keysOf: WHOLE_CLUSTER, fingerprint: entryPrint }),
  watches(neighbors, { keysOf: WHOLE_CLUSTER, fingerprint: entryPrint }),
  watches(nodes, { keysOf: WHOLE_CLUSTER, fingerprint: nodePrint }),
  watches(pods, { keysOf: WHOLE_CLUSTER, fingerprint: podPrint }),
];

const createParts = (config: L2NetworksConfig, services: HostServices): readonly HostPart[] => {
  const plane = openControlPlane({ name: 'l2-networks', config, services });
  const informers = openInformers(plane);
  const controller = createController({
    name: 'l2-networks',
    sources: sourcesOf(informers),
    gatherMs: GATHER_MS,
    reconcile: networksReconciler({
      snapshot: () => snapshotOf(informers),
      clients: clientsOf(plane.cluster),
      writes: createObjectWrites(plane),
      recorder: plane.recorder,
      metrics: l2Metrics(plane.stateMetrics),
      logger: plane.logger,
    }),
    logger: plane.logger,
    metrics: plane.metrics,
  });
  return [plane.part([controller])];
};

export const l2NetworksModule = (config: L2NetworksConfig) => (services: HostServices) =>
  hostModule(() => createParts(config, services));
