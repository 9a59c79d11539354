import { type ConfigOf, type controlPlaneOptions } from '@unbounded/config';
import { createController, watches } from '@unbounded/controller-runtime';
import {
  gatewayPoolKind,
  gatewayPoolNodeKind,
  gatewayPoolPeeringKind,
  siteGatewayPoolAssignmentKind,
  siteKind,
  sitePeeringKind,
} from '@unbounded/crds';
import { hostModule, type HostPart, type HostServices, openControlPlane } from '@unbounded/host';
import { clientOf, nodes as nodeResource, resourceOf, withoutImages } from '@unbounded/kube';

import { gatewayNodeFingerprint, gatewaysReconciler } from './gateways.reconciler.ts';
import { gatewayMetrics } from './gateway-metrics.ts';

export type GatewayHealthConfig = ConfigOf<typeof controlPlaneOptions>;

const GATHER_MS = 50;

const createParts = (config: GatewayHealthConfig, services: HostServices): readonly HostPart[] => {
  const plane = openControlPlane({ name: 'gateway-health', config, services });
  const caches = {
    nodes: plane.informer(nodeResource, { trim: withoutImages }),
    sites: plane.informer(resourceOf(siteKind)),
    pools: plane.informer(resourceOf(gatewayPoolKind)),
    poolNodes: plane.informer(resourceOf(gatewayPoolNodeKind)),
    assignments: plane.informer(resourceOf(siteGatewayPoolAssignmentKind)),
    sitePeerings: plane.informer(resourceOf(sitePeeringKind)),
    poolPeerings: plane.informer(resourceOf(gatewayPoolPeeringKind)),
  };
  const clients = {
    nodes: plane.cluster.client(nodeResource),
    pools: clientOf(plane.cluster, gatewayPoolKind),
    poolNodes: clientOf(plane.cluster, gatewayPoolNodeKind),
    assignments: clientOf(plane.cluster, siteGatewayPoolAssignmentKind),
    poolPeerings: clientOf(plane.cluster, gatewayPoolPeeringKind),
  };
  const keysOf = () => ['cluster'];
  const controller = createController({
    name: 'gateway-pools',
    sources: [
      watches(caches.nodes, { keysOf, fingerprint: gatewayNodeFingerprint }),
      watches(caches.sites, { keysOf, fingerprint: ({ metadata }) => String(metadata.generation) }),
      watches(caches.pools, { keysOf }),
      // Every gateway's agent writes its status every 13 s; that is looked at by time, not by event.
      watches(caches.poolNodes, {
        keysOf,
        fingerprint: ({ metadata, spec }) => JSON.stringify([metadata.labels, metadata.ownerReferences, spec]),
      }),
      watches(caches.assignments, { keysOf }),
      watches(caches.sitePeerings, { keysOf, fingerprint: ({ metadata }) => String(metadata.generation) }),
      watches(caches.poolPeerings, { keysOf }),
    ],
    reconcile: gatewaysReconciler({
      caches,
      clients,
      metrics: gatewayMetrics(plane.metrics),
      recorder: plane.recorder,
    }),
    gatherMs: GATHER_MS,
    logger: plane.logger,
    metrics: plane.metrics,
  });
  return [plane.part([controller])];
};

export const gatewayHealthModule = (config: GatewayHealthConfig) => (services: HostServices) =>
  hostModule(() => createParts(config, services));
