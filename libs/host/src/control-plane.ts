import { hostname } from 'node:os';

import type { ConfigOf, controlPlaneOptions } from '@unbounded/config';
import {
  type Controller,
  createElection,
  createInformer,
  createManager,
  type Informer,
  type InformerOptions,
  leaderMetric,
  type Manager,
} from '@unbounded/controller-runtime';
import {
  type Cluster,
  coreClients,
  createEventRecorder,
  type EventRecorder,
  type KubeObject,
  type Resource,
} from '@unbounded/kube';
import { openCluster } from '@unbounded/kube/open-cluster';

import { createStateMetrics, type Metrics } from '@unbounded/telemetry';

import type { HostServices } from './host.ts';
import type { HostPart } from './part.ts';

export interface ControlPlaneOptions {
  /** The program's name, also of its Lease. */
  readonly name: string;
  readonly config: ConfigOf<typeof controlPlaneOptions>;
  readonly services: HostServices;
}

/** What a controller program is made from. */
export interface ControlPlane extends HostServices {
  readonly cluster: Cluster;
  readonly recorder: EventRecorder;
  /** For what the leader says of the cluster: gauges that it set are gone when another one leads. */
  readonly stateMetrics: Metrics;
  informer<T extends KubeObject>(
    resource: Resource<T>,
    options?: Pick<InformerOptions<T>, 'trim' | 'filter'>,
  ): Informer<T>;
  /** Everything that `informer` gave, the election and these controllers, as one part of the host. */
  part(controllers: readonly Controller[]): HostPart;
}

/** A manager's work as a part of the host. @param onStopped when it has ended */
export const managerPart = (name: string, manager: Manager, onStopped: () => void | Promise<void>): HostPart => ({
  name,
  failed: manager.failed,
  get isReady() {
    return manager.isReady;
  },
  start: () => manager.start(),
  async stop() {
    await manager.stop();
    await onStopped();
  },
});

export const openControlPlane = ({ name, config, services }: ControlPlaneOptions): ControlPlane => {
  const { logger, metrics } = services;
  const cluster = openCluster({ kubeconfig: config.kubeconfig, metrics });
  const { events, leases } = coreClients(cluster);
  const recorder = createEventRecorder({ events, controller: `unbounded/${name}`, logger, metrics });
  const informers: Informer<KubeObject>[] = [];
  const state = createStateMetrics(metrics);
  const election = config.leaderElect
    ? createElection({
        leases,
        namespace: config.leaseNamespace,
        name,
        identity: `${hostname()}_${process.pid}_${Math.random().toString(36).slice(2, 8)}`,
        leaseDurationMs: config.leaseDuration,
        logger,
        onChange: leaderMetric(metrics, name),
      })
    : undefined;
  return {
    ...services,
    cluster,
    recorder,
    stateMetrics: state.metrics,
    informer: (resource, options) => {
      const informer = createInformer({ client: cluster.client(resource), logger, ...options });
      informers.push(informer);
      return informer;
    },
    part: (controllers) => {
      const manager = createManager({ informers, controllers, election, afterWork: state.forget, logger });
      return managerPart('controllers', manager, async () => {
        await recorder.flush();
        cluster.close();
      });
    },
  };
};
