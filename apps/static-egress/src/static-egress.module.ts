import { createController, createObjectWrites, type Source, watches } from '@unbounded/controller-runtime';
import { hostModule, type HostPart, type HostServices } from '@unbounded/host';
import { type ControlPlane, openControlPlane } from '@unbounded/host/control-plane';
import { serviceCidrs } from '@unbounded/kube';

import { createAgentLife } from './agents/agent-life.ts';
import { createGoneNodes } from './agents/gone-nodes.ts';
import { createKnownSubnets } from './agents/known-subnets.ts';
import { createLifeWatch } from './agents/life-watch.ts';
import { EGRESS_RESOURCES, SENDING_PODS } from './cluster/egress-objects.ts';
import { namespacePrint, nodePrint, podPrint, rulePrint, servicePrint, slicePrint } from './cluster/fingerprints.ts';
import { keptNamespace, keptNode, keptPod, keptService } from './cluster/kept-fields.ts';
import { listObjects } from './cluster/listed-objects.ts';
import { createServiceCidrs } from './cluster/service-cidrs.ts';
import { snapshotOf } from './cluster/snapshot.ts';
import { egressMetrics } from './egress-metrics.ts';
import { egressReconciler } from './egress.reconciler.ts';
import type { StaticEgressConfig } from './static-egress.config.ts';
import { wallTime } from './wall-time.ts';
import { createNews, type News } from './writes/news.ts';
import { createOwnWrites } from './writes/own-writes.ts';
import { createWritePace } from './writes/write-pace.ts';

const CLUSTER = 'cluster';
/** Pods of a Deployment come within moments of each other. */
const GATHER_MS = 50;
/** New pods wait for a plan: an API server that answers again is heard soon. */
const BACKOFF = { baseMs: 20, maxMs: 5000 } as const;
/** Until the API server has said which blocks Services have. */
const LOOK_AGAIN_MS = 100;
/** Of the duration of a Lease: a leader stops at two thirds of it, and a write that began after a shorter break ends before the rest. */
const LONGEST_BREAK = 1 / 5;

const openInformers = (plane: ControlPlane) => ({
  rules: plane.informer(EGRESS_RESOURCES.rules),
  clusterRules: plane.informer(EGRESS_RESOURCES.clusterRules),
  pools: plane.informer(EGRESS_RESOURCES.pools),
  slices: plane.informer(EGRESS_RESOURCES.slices),
  nodes: plane.informer(EGRESS_RESOURCES.nodes, { trim: keptNode }),
  pods: plane.informer(EGRESS_RESOURCES.pods, { trim: keptPod, filter: SENDING_PODS }),
  services: plane.informer(EGRESS_RESOURCES.services, { trim: keptService }),
  namespaces: plane.informer(EGRESS_RESOURCES.namespaces, { trim: keptNamespace }),
  sites: plane.informer(EGRESS_RESOURCES.sites),
});
type EgressInformers = ReturnType<typeof openInformers>;

const sourcesOf = (informers: EgressInformers, news: News): readonly Source[] => {
  const keysOf = () => [CLUSTER];
  return [
    // At least once after we became the leader, also in a cluster without any object; and at every resync.
    news.all({ connect: () => {}, keys: keysOf }),
    news.ofOthers(informers.rules, CLUSTER, rulePrint),
    news.ofOthers(informers.clusterRules, CLUSTER, rulePrint),
    news.ofOthers(informers.pools, CLUSTER, rulePrint),
    news.ofOthers(informers.slices, CLUSTER, slicePrint),
    news.all(watches(informers.nodes, { keysOf, fingerprint: nodePrint })),
    news.all(watches(informers.pods, { keysOf, fingerprint: podPrint })),
    news.all(watches(informers.services, { keysOf, fingerprint: servicePrint })),
    news.all(watches(informers.namespaces, { keysOf, fingerprint: namespacePrint })),
    news.all(watches(informers.sites, { keysOf, fingerprint: ({ metadata }) => String(metadata.generation) })),
  ];
};

/** The kinds that we write, with clients that take note of it. */
const createWriters = ({ cluster }: ControlPlane, { rules, clusterRules, pools, slices }: EgressInformers) => {
  const kinds = {
    rules: { client: cluster.client(EGRESS_RESOURCES.rules), cache: rules },
    clusterRules: { client: cluster.client(EGRESS_RESOURCES.clusterRules), cache: clusterRules },
    pools: { client: cluster.client(EGRESS_RESOURCES.pools), cache: pools },
    slices: { client: cluster.client(EGRESS_RESOURCES.slices), cache: slices },
  };
  const ownWrites = createOwnWrites(Object.values(kinds));
  const clients = {
    rules: ownWrites.noting(kinds.rules),
    clusterRules: ownWrites.noting(kinds.clusterRules),
    pools: ownWrites.noting(kinds.pools),
    slices: ownWrites.noting(kinds.slices),
  };
  return { ownWrites, clients };
};

const createParts = (config: StaticEgressConfig, services: HostServices): readonly HostPart[] => {
  const plane = openControlPlane({ name: 'static-egress', config, services });
  const informers = openInformers(plane);
  const life = createAgentLife({ timeoutMs: config.agentTimeout });
  const lifeWatch = createLifeWatch(life, { slices: informers.slices, nodes: informers.nodes, key: CLUSTER });
  const subnets = createKnownSubnets();
  const goneNodes = createGoneNodes({ graceMs: config.ownerGrace, key: CLUSTER });
  const served = createServiceCidrs({ client: plane.cluster.client(serviceCidrs), key: CLUSTER, logger: plane.logger });
  const writers = createWriters(plane, informers);
  const news = createNews((version) => writers.ownWrites.isOwn(version));
  const controller = createController({
    name: 'static-egress',
    sources: [
      ...sourcesOf(informers, news),
      news.all(lifeWatch.source),
      news.all(served.source),
      news.all(goneNodes.source),
    ],
    gatherMs: GATHER_MS,
    backoff: BACKOFF,
    reconcile: egressReconciler({
      ...writers,
      news,
      objects: () => listObjects(informers),
      podOf: (key) => informers.pods.get(key),
      snapshotOf: (objects) => {
        const nodes = goneNodes.complete(objects.nodes, objects.slices);
        const slices = subnets.complete(objects.slices, nodes);
        return snapshotOf(
          { ...objects, nodes, slices },
          {
            isAgentAlive: (uid: string) => life.isAlive(uid),
            formerGrants: goneNodes.formerGrants(),
            serviceCidrs: [...config.serviceCidrs, ...(served.list() ?? [])],
            now: wallTime(),
          },
        );
      },
      untilKnownMs: () => (served.list() ? life.untilKnownMs(informers.nodes.list()) : LOOK_AGAIN_MS),
      pace: createWritePace({ longestBreakMs: config.leaseDuration * LONGEST_BREAK }),
      writes: createObjectWrites(plane),
      recorder: plane.recorder,
      metrics: egressMetrics(plane.stateMetrics),
      logger: plane.logger,
    }),
    logger: plane.logger,
    metrics: plane.metrics,
  });
  return [lifeWatch.part, served.part, plane.part([controller])];
};

export const staticEgressModule = (config: StaticEgressConfig) => (services: HostServices) =>
  hostModule(() => createParts(config, services));
