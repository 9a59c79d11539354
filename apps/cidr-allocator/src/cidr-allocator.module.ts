import { createController, createObjectWrites, watches } from '@unbounded/controller-runtime';
import { gatewayPoolKind, meshKind, type Site, siteKind, siteNodeSliceKind } from '@unbounded/crds';
import { hostModule, type HostPart, type HostServices } from '@unbounded/host';
import { openControlPlane } from '@unbounded/host/control-plane';
import {
  endpointSlices,
  nodes as nodeResource,
  resourceOf,
  serviceCidrs,
  services as serviceResource,
  withoutImages,
} from '@unbounded/kube';
import { nodeFingerprint } from '@unbounded/membership';

import { allocationReconciler } from './allocation.reconciler.ts';
import { allocatorMetrics } from './allocator-metrics.ts';
import type { CidrAllocatorConfig } from './cidr-allocator.config.ts';
import { createClusterAddresses } from './cluster-addresses.ts';
import { createCooldown, releasedBy } from './cooldown.ts';
import { poolFingerprint } from './underlay.plan.ts';

const WHOLE_CLUSTER = () => ['cluster'];

/** Nodes come in bursts, and whoever gives a block lists all of them anew. */
const GATHER_MS = 100;

/** A block for locators that somebody else writes or takes away is put right at once. */
const siteFingerprint = ({ metadata, status }: Site): string =>
  `${metadata.generation} ${status?.l2LocatorBlock ?? ''}`;

const createParts = (config: CidrAllocatorConfig, services: HostServices): readonly HostPart[] => {
  const plane = openControlPlane({ name: 'cidr-allocator', config, services });
  const siteResource = resourceOf(siteKind);
  const nodes = plane.informer(nodeResource, { trim: withoutImages });
  const sites = plane.informer(siteResource);
  const pools = plane.informer(resourceOf(gatewayPoolKind));
  const slices = plane.informer(resourceOf(siteNodeSliceKind));
  const meshes = plane.informer(resourceOf(meshKind));
  const cooldown = createCooldown(config.blockCooldown);
  nodes.on((change) => {
    if (change.type === 'deleted') cooldown.released(releasedBy(change.object, undefined));
    if (change.type === 'updated') cooldown.released(releasedBy(change.previous, change.object));
  });
  const fatal = Promise.withResolvers<never>();
  fatal.promise.catch(() => undefined);
  const controller = createController({
    name: 'pod-cidrs',
    sources: [
      watches(nodes, { keysOf: WHOLE_CLUSTER, fingerprint: nodeFingerprint }),
      watches(pools, { keysOf: WHOLE_CLUSTER, fingerprint: poolFingerprint }),
      // The records decide about conflicts and cooling only: a look at them by the way is enough, without a round for each.
      watches(slices, { keysOf: WHOLE_CLUSTER, fingerprint: () => '' }),
      watches(sites, { keysOf: WHOLE_CLUSTER, fingerprint: siteFingerprint }),
      watches(meshes, { keysOf: WHOLE_CLUSTER, fingerprint: ({ metadata }) => String(metadata.generation) }),
    ],
    reconcile: allocationReconciler({
      nodes,
      sites,
      pools,
      slices,
      meshes,
      clusterAddresses: createClusterAddresses({
        endpointSlices: plane.cluster.client(endpointSlices),
        services: plane.cluster.client(serviceResource),
        serviceCidrs: plane.cluster.client(serviceCidrs),
        given: config.serviceCidrs,
        logger: plane.logger,
      }),
      cooldown,
      writes: createObjectWrites(plane),
      nodeClient: plane.cluster.client(nodeResource),
      siteClient: plane.cluster.client(siteResource),
      recorder: plane.recorder,
      metrics: allocatorMetrics(plane.stateMetrics),
      logger: plane.logger,
      onExhausted: ({ site }) => {
        if (config.onExhaustion === 'exit')
          fatal.reject(new Error(`Site ${site} has no free pod CIDR (--on-exhaustion=exit)`));
      },
    }),
    gatherMs: GATHER_MS,
    logger: plane.logger,
    metrics: plane.metrics,
  });
  return [plane.part([controller]), { name: 'exhaustion', start: () => {}, stop: () => {}, failed: fatal.promise }];
};

export const cidrAllocatorModule = (config: CidrAllocatorConfig) => (services: HostServices) =>
  hostModule(() => createParts(config, services));
