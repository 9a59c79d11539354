import { RELAY_SERVICE } from '@unbounded/config/ownership';
import {
  type Controller,
  createController,
  createObjectWrites,
  type Informer,
  type Source,
  watches,
} from '@unbounded/controller-runtime';
import {
  gatewayPoolKind,
  gatewayPoolNodeKind,
  gatewayPoolPeeringKind,
  meshKind,
  siteGatewayPoolAssignmentKind,
  siteKind,
  siteNodeSliceKind,
  type GatewayPool,
  type Mesh,
  type Site,
  type SiteNodeSlice,
  sitePeeringKind,
} from '@unbounded/crds';
import { hostModule, type HostPart, type HostServices } from '@unbounded/host';
import { type ControlPlane, openControlPlane } from '@unbounded/host/control-plane';
import {
  clientOf,
  configMaps,
  deployments,
  networkPolicies,
  type Node,
  nodes as nodeResource,
  podDisruptionBudgets,
  pods,
  resourceOf,
  secrets,
  services as serviceResource,
  withoutImages,
} from '@unbounded/kube';

import { createExternalNames, dnsResolve, type ExternalNames } from './external-names.ts';
import { gatewayNodeFingerprint, gatewaysReconciler, LOOK_AGAIN_MS } from './gateways.reconciler.ts';
import type { GatewayHealthConfig } from './gateway-health.config.ts';
import { gatewayMetrics } from './gateway-metrics.ts';
import { KEYS_CONFIG_MAP, poolKeys, sliceKeys } from './relay-keys.plan.ts';
import { relayKeysReconciler } from './relay-keys.reconciler.ts';
import { relayNodeFingerprint } from './relay-readiness.ts';
import { relayPoolFingerprint, relayReconciler } from './relay.reconciler.ts';

const GATHER_MS = 50;

/** What a round depends on of a Site: its spec, and of its status the block that locators of its gateways count in. */
const siteFingerprint = ({ metadata, status }: Site): string =>
  `${metadata.generation} ${status?.l2LocatorBlock ?? ''}`;

const imageOf = ({ relayImage, relayImagePullPolicy, relayImagePullSecrets = '' }: GatewayHealthConfig) =>
  relayImage === undefined
    ? undefined
    : {
        image: relayImage,
        pullPolicy: relayImagePullPolicy,
        pullSecrets: relayImagePullSecrets.split(',').filter(Boolean),
      };

/** A second passes before pods are told of a new list: their kubelets must have heard of it. */
const GATHER_KEYS_MS = 1000;

interface Shared {
  readonly nodes: Informer<Node>;
  readonly pools: Informer<GatewayPool>;
  readonly slices: Informer<SiteNodeSlice>;
  readonly meshes: Informer<Mesh>;
}

/** Beside the gateways': they have a lock on nothing of theirs, and their failures are their own. */
const relayControllers = (plane: ControlPlane, shared: Shared, config: GatewayHealthConfig): Controller[] => {
  const namespace = config.leaseNamespace;
  const named = (name: string) => ({ filter: { namespace, fieldSelector: `metadata.name=${name}` } });
  const caches = {
    deployments: plane.informer(deployments, named(RELAY_SERVICE)),
    configMaps: plane.informer(configMaps, named(KEYS_CONFIG_MAP)),
    ...shared,
  };
  const keysOf = () => ['relay'];
  const common = { logger: plane.logger, metrics: plane.metrics };
  const relay = createController({
    ...common,
    name: 'relay',
    sources: [
      watches(caches.meshes, { keysOf }),
      watches(caches.deployments, { keysOf }),
      watches(plane.informer(serviceResource, named(RELAY_SERVICE)), { keysOf }),
      watches(shared.nodes, { keysOf, fingerprint: relayNodeFingerprint }),
      watches(shared.pools, { keysOf, fingerprint: relayPoolFingerprint }),
    ],
    reconcile: relayReconciler({
      caches,
      clients: {
        meshes: clientOf(plane.cluster, meshKind),
        deployments: plane.cluster.client(deployments),
        services: plane.cluster.client(serviceResource),
        secrets: plane.cluster.client(secrets),
        configMaps: plane.cluster.client(configMaps),
        networkPolicies: plane.cluster.client(networkPolicies),
        disruptionBudgets: plane.cluster.client(podDisruptionBudgets),
      },
      recorder: plane.recorder,
      namespace,
      image: imageOf(config),
    }),
    gatherMs: GATHER_MS,
  });
  const keys = createController({
    ...common,
    name: 'relay-keys',
    sources: [
      watches(caches.meshes, { keysOf, fingerprint: ({ metadata }) => String(metadata.generation) }),
      watches(caches.deployments, { keysOf, fingerprint: ({ metadata }) => String(metadata.generation) }),
      watches(caches.configMaps, { keysOf }),
      watches(caches.slices, { keysOf, fingerprint: sliceKeys }),
      watches(shared.pools, { keysOf, fingerprint: poolKeys }),
    ],
    reconcile: relayKeysReconciler({
      caches,
      clients: { configMaps: plane.cluster.client(configMaps), pods: plane.cluster.client(pods) },
      namespace,
      logger: plane.logger,
    }),
    gatherMs: GATHER_KEYS_MS,
  });
  return [relay, keys];
};

/** A name that stands for another address is a change like one of an object. */
const namesSource = (names: ExternalNames, key: string): Source => ({
  connect: (enqueue) => names.on(() => enqueue(key)),
  keys: () => [],
});

const createNames = ({ dnsServers = '', dnsInterval }: GatewayHealthConfig): ExternalNames =>
  createExternalNames({ resolve: dnsResolve(dnsServers.split(',').filter(Boolean)), intervalMs: dnsInterval });

const createParts = (config: GatewayHealthConfig, services: HostServices): readonly HostPart[] => {
  const plane = openControlPlane({ name: 'gateway-health', config, services });
  const caches = {
    nodes: plane.informer(nodeResource, { trim: withoutImages }),
    sites: plane.informer(resourceOf(siteKind)),
    slices: plane.informer(resourceOf(siteNodeSliceKind)),
    pools: plane.informer(resourceOf(gatewayPoolKind)),
    poolNodes: plane.informer(resourceOf(gatewayPoolNodeKind)),
    assignments: plane.informer(resourceOf(siteGatewayPoolAssignmentKind)),
    sitePeerings: plane.informer(resourceOf(sitePeeringKind)),
    poolPeerings: plane.informer(resourceOf(gatewayPoolPeeringKind)),
    meshes: plane.informer(resourceOf(meshKind)),
  };
  const clients = {
    nodes: plane.cluster.client(nodeResource),
    pools: clientOf(plane.cluster, gatewayPoolKind),
    poolNodes: clientOf(plane.cluster, gatewayPoolNodeKind),
    assignments: clientOf(plane.cluster, siteGatewayPoolAssignmentKind),
    poolPeerings: clientOf(plane.cluster, gatewayPoolPeeringKind),
  };
  const names = createNames(config);
  const keysOf = () => ['cluster'];
  const controller = createController({
    name: 'gateway-pools',
    sources: [
      watches(caches.nodes, { keysOf, fingerprint: gatewayNodeFingerprint }),
      watches(caches.sites, { keysOf, fingerprint: siteFingerprint }),
      watches(caches.slices, { keysOf }),
      watches(caches.pools, { keysOf }),
      namesSource(names, 'cluster'),
      // Every gateway's agent writes its status every 13 s; that is looked at by time, not by event.
      watches(caches.poolNodes, {
        keysOf,
        fingerprint: ({ metadata, spec }) => JSON.stringify([metadata.labels, metadata.ownerReferences, spec]),
      }),
      watches(caches.assignments, { keysOf }),
      watches(caches.sitePeerings, { keysOf, fingerprint: ({ metadata }) => String(metadata.generation) }),
      watches(caches.poolPeerings, { keysOf }),
      watches(caches.meshes, { keysOf, fingerprint: ({ metadata }) => String(metadata.generation) }),
    ],
    reconcile: gatewaysReconciler({
      caches,
      clients,
      metrics: gatewayMetrics(plane.stateMetrics),
      recorder: plane.recorder,
      writes: createObjectWrites(plane),
      names,
      lookAgainMs: Math.min(LOOK_AGAIN_MS, config.dnsInterval),
    }),
    gatherMs: GATHER_MS,
    logger: plane.logger,
    metrics: plane.metrics,
  });
  return [plane.part([controller, ...relayControllers(plane, caches, config)])];
};

export const gatewayHealthModule = (config: GatewayHealthConfig) => (services: HostServices) =>
  hostModule(() => createParts(config, services));
