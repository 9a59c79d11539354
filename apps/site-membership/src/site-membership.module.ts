import type { ConfigOf, controlPlaneOptions } from '@unbounded/config';
import { createController, createObjectWrites, watches } from '@unbounded/controller-runtime';
import { gatewayPoolKind, siteKind, siteNodeSliceKind, sitePeeringKind } from '@unbounded/crds';
import { hostModule, type HostPart, type HostServices } from '@unbounded/host';
import { openControlPlane } from '@unbounded/host/control-plane';
import { clientOf, nodes as nodeResource, resourceOf, withoutImages } from '@unbounded/kube';
import { nodeFingerprint } from '@unbounded/membership';

import { membershipReconciler } from './membership.reconciler.ts';
import { membershipMetrics } from './membership-metrics.ts';
import { createNodeWrites } from './node-writes.ts';

export type SiteMembershipConfig = ConfigOf<typeof controlPlaneOptions>;

/** Nodes come in bursts; a slice of 500 is written once for all of them. */
const GATHER_MS = 100;

const createParts = (config: SiteMembershipConfig, services: HostServices): readonly HostPart[] => {
  const plane = openControlPlane({ name: 'site-membership', config, services });
  const caches = {
    nodes: plane.informer(nodeResource, { trim: withoutImages }),
    sites: plane.informer(resourceOf(siteKind)),
    slices: plane.informer(resourceOf(siteNodeSliceKind)),
    pools: plane.informer(resourceOf(gatewayPoolKind)),
    peerings: plane.informer(resourceOf(sitePeeringKind)),
  };
  const clients = {
    sites: clientOf(plane.cluster, siteKind),
    slices: clientOf(plane.cluster, siteNodeSliceKind),
    peerings: clientOf(plane.cluster, sitePeeringKind),
  };
  const nodeWrites = createNodeWrites({
    client: plane.cluster.client(nodeResource),
    recorder: plane.recorder,
    logger: plane.logger,
    writes: createObjectWrites(plane),
  });
  const keysOf = () => ['cluster'];
  const sites = createController({
    name: 'sites',
    sources: [
      watches(caches.nodes, { keysOf, fingerprint: nodeFingerprint }),
      watches(caches.sites, { keysOf }),
      watches(caches.slices, { keysOf }),
      watches(caches.pools, { keysOf }),
      watches(caches.peerings, { keysOf }),
    ],
    reconcile: membershipReconciler({
      caches,
      clients,
      metrics: membershipMetrics(plane.stateMetrics),
      recorder: plane.recorder,
      writes: createObjectWrites(plane),
      nodeWrites,
    }),
    gatherMs: GATHER_MS,
    logger: plane.logger,
    metrics: plane.metrics,
  });
  const nodes = createController({
    name: 'nodes',
    sources: [nodeWrites.source],
    reconcile: nodeWrites.reconcile,
    logger: plane.logger,
    metrics: plane.metrics,
  });
  return [plane.part([sites, nodes])];
};

export const siteMembershipModule = (config: SiteMembershipConfig) => (services: HostServices) =>
  hostModule(() => createParts(config, services));
