import { createController, watches } from '@unbounded/controller-runtime';
import { siteKind } from '@unbounded/crds';
import { hostModule, type HostPart, type HostServices, openControlPlane } from '@unbounded/host';
import { nodes as nodeResource, resourceOf, withoutImages } from '@unbounded/kube';
import { nodeFingerprint } from '@unbounded/membership';

import { allocationReconciler } from './allocation.reconciler.ts';
import { allocatorMetrics } from './allocator-metrics.ts';
import { type CidrAllocatorConfig } from './cidr-allocator.config.ts';

const WHOLE_CLUSTER = () => ['cluster'];

const createParts = (config: CidrAllocatorConfig, services: HostServices): readonly HostPart[] => {
  const plane = openControlPlane({ name: 'cidr-allocator', config, services });
  const siteResource = resourceOf(siteKind);
  const nodes = plane.informer(nodeResource, { trim: withoutImages });
  const sites = plane.informer(siteResource);
  const fatal = Promise.withResolvers<never>();
  fatal.promise.catch(() => undefined);
  const controller = createController({
    name: 'pod-cidrs',
    sources: [
      watches(nodes, { keysOf: WHOLE_CLUSTER, fingerprint: nodeFingerprint }),
      watches(sites, { keysOf: WHOLE_CLUSTER, fingerprint: ({ metadata }) => String(metadata.generation) }),
    ],
    reconcile: allocationReconciler({
      nodes,
      sites,
      nodeClient: plane.cluster.client(nodeResource),
      siteClient: plane.cluster.client(siteResource),
      recorder: plane.recorder,
      metrics: allocatorMetrics(plane.metrics),
      logger: plane.logger,
      onExhausted: ({ site }) => {
        if (config.onExhaustion === 'exit')
          fatal.reject(new Error(`Site ${site} has no free pod CIDR (--on-exhaustion=exit)`));
      },
    }),
    logger: plane.logger,
    metrics: plane.metrics,
  });
  return [plane.part([controller]), { name: 'exhaustion', start: () => {}, stop: () => {}, failed: fatal.promise }];
};

export const cidrAllocatorModule = (config: CidrAllocatorConfig) => (services: HostServices) =>
  hostModule(() => createParts(config, services));
