import { hostname } from 'node:os';
import { join } from 'node:path';
import { createInformer, createManager } from '@unbounded/controller-runtime';
import { meshKind, siteKind, type TailnetDevice, tailnetDeviceKind } from '@unbounded/crds';
import { hostModule, type HostPart, type HostServices } from '@unbounded/host';
import { managerPart } from '@unbounded/host/control-plane';
import { type Prefix, tryParsePrefix, withoutCovered } from '@unbounded/ip';
import { type Cluster, ignoreGone, resourceOf } from '@unbounded/kube';
import { openCluster } from '@unbounded/kube/open-cluster';
import { createAdmission } from './admission.ts';
import { agentMetrics } from './agent-metrics.ts';
import { createCniRequests } from './cni-requests.ts';
import type { KeptPod, NodeStatusPatch } from './device.plan.ts';
import { createGrpcPart } from './grpc.part.ts';
import { createKeeperFiles } from './keeper-files.ts';
import { createKeptPods } from './kept-pods.ts';
import { measuredRequests } from './measured-requests.ts';
import { createPodDevices, type PodDevices } from './pod-devices.ts';
import type { TailnetConfig } from './tailnet.config.ts';

const openInformers = (cluster: Cluster, nodeName: string, { logger }: HostServices) => ({
  records: createInformer({
    client: cluster.client(resourceOf(tailnetDeviceKind)),
    filter: { fieldSelector: `spec.node=${nodeName}` },
    logger,
  }),
  meshes: createInformer({ client: cluster.client(resourceOf(meshKind)), logger }),
  sites: createInformer({ client: cluster.client(resourceOf(siteKind)), logger }),
});
type Informers = ReturnType<typeof openInformers>;

/** Of nodes and pods of all sites, and those that were given. */
const clusterBlocks = ({ sites }: Informers, given: readonly Prefix[]): readonly Prefix[] => {
  const texts = sites
    .list()
    .flatMap(({ spec }) => [
      ...spec.nodeCidrs,
      ...(spec.podCidrAssignments ?? []).flatMap(({ cidrBlocks }) => cidrBlocks),
    ]);
  return withoutCovered([...given, ...texts.flatMap((text) => tryParsePrefix(text) ?? [])]);
};

/** The next look waits for it, and with that a container that comes or goes. */
const WRITE_WITHIN_MS = 5000;

const statusWriter = (cluster: Cluster) => {
  const client = cluster.client(resourceOf(tailnetDeviceKind));
  return async ({ metadata }: TailnetDevice, patch: NodeStatusPatch): Promise<void> => {
    const { name, namespace = '', uid } = metadata;
    const signal = AbortSignal.timeout(WRITE_WITHIN_MS);
    // Of the very record: another one of the name is of another pod.
    await client.mergePatch(name, { metadata: { uid }, status: patch }, { namespace, subresource: 'status', signal });
  };
};

/** By the API server itself: a cache may be behind, and an identity that is removed is gone for good. */
const recordLookup = (cluster: Cluster) => {
  const client = cluster.client(resourceOf(tailnetDeviceKind));
  return async ({ namespace, podName, podUID }: KeptPod, signal: AbortSignal): Promise<boolean> => {
    const record = await client.get(podName, { namespace, signal }).catch(ignoreGone);
    return record?.spec.podUID !== podUID || record.metadata.deletionTimestamp !== undefined;
  };
};

const tidying = (devices: PodDevices, everyMs: number): HostPart => {
  let timer: NodeJS.Timeout | undefined;
  return {
    name: 'devices',
    start: () => {
      timer = setInterval(() => void devices.tidy(), everyMs);
    },
    stop: async () => {
      clearInterval(timer);
      await devices.stop();
    },
  };
};

const createParts = (config: TailnetConfig, services: HostServices): readonly HostPart[] => {
  const { logger, metrics } = services;
  const { nodeName = hostname(), stateDir, runDir, clusterCidrs } = config;
  const cluster = openCluster({ kubeconfig: config.kubeconfig, metrics });
  const informers = openInformers(cluster, nodeName, services);
  const manager = createManager({ informers: Object.values(informers), controllers: [], logger });
  const admission = createAdmission({
    ...{ cluster, nodeName },
    mesh: (name) => informers.meshes.get(name),
    isMeshKnown: () => informers.meshes.isSynced,
  });
  const counted = agentMetrics(metrics);
  const devices = createPodDevices({
    kept: createKeptPods(join(stateDir, 'pods')),
    keeper: createKeeperFiles(runDir),
    recordOf: (namespace, podName) => informers.records.get(`${namespace}/${podName}`),
    areRecordsKnown: () => informers.records.isSynced,
    isRecordGone: recordLookup(cluster),
    isPodGone: (pod, signal) => admission.isGone(pod, signal),
    cluster: () => (informers.sites.isSynced ? clusterBlocks(informers, clusterCidrs) : undefined),
    writeStatus: statusWriter(cluster),
    onUp: counted.up,
    logger,
  });
  counted.observe(() => devices.observe());
  informers.records.on(({ object, type }) => {
    devices.onRecord(object);
    if (type === 'deleted') void devices.tidy();
  });
  const followed = managerPart('cluster', manager, () => cluster.close());
  const service = measuredRequests(createCniRequests(devices, admission), counted);
  return [followed, tidying(devices, config.tidyInterval), createGrpcPart(config.socket, service, logger)];
};

export const tailnetModule = (config: TailnetConfig) => (services: HostServices) =>
  hostModule(() => createParts(config, services));
