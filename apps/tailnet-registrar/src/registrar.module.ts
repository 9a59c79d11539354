import {
  type Controller,
  createController,
  createObjectWrites,
  type Source,
  watches,
} from '@unbounded/controller-runtime';
import { MESH_NAME, type Mesh, type TailnetDevice } from '@unbounded/crds';
import { hostModule, type HostPart, type HostServices } from '@unbounded/host';
import { type ControlPlane, openControlPlane } from '@unbounded/host/control-plane';

import { createConfirmedRemovals } from './confirmed-removals.ts';
import { createCredentials } from './credentials.ts';
import { createStatusWriter } from './device-status.ts';
import { devicesReconciler } from './devices.reconciler.ts';
import { podConditionReconciler } from './pod-condition.reconciler.ts';
import { createBudget, createMisses, createPauses, type Pauses } from './pauses.ts';
import { recordsReconciler } from './records.reconciler.ts';
import type { RegistrarConfig } from './registrar.config.ts';
import { registrarMetrics } from './registrar-metrics.ts';
import {
  clientsOf,
  deviceWords,
  keptNamespace,
  keptPod,
  keyOf,
  meshPrint,
  namespacePrint,
  podPrint,
  recordPrint,
  REGISTRAR_RESOURCES,
  stepsPrint,
} from './registrar-objects.ts';
import { sweepReconciler } from './sweep.reconciler.ts';
import { createTailnetAccess } from './tailnet-access.ts';
import { createTailnetHealth, type TailnetHealth } from './tailnet-health.ts';
import { createTailnetState } from './tailnet-state.ts';

const WHOLE_CLUSTER = () => ['cluster'];
/** Pods of a Deployment come within moments of each other. A pod may wait for its device. */
const GATHER_MS = 20;
/** One slow request delays no other record; the API is asked at most five times at once as well. */
const RECORDS_AT_A_TIME = 5;
/** At least this long between two attempts of all records at once. */
const WAKE_EVERY_MS = 5000;
const KEYS = { everyMs: 10_000, perHour: 20 } as const;
const LOOKUPS = { everyMs: 1000, perHour: 120 } as const;
const REMOVALS = { everyMs: 1000, perHour: 20 } as const;
const monotonic = (): number => performance.now();

const openInformers = (plane: ControlPlane) => ({
  meshes: plane.informer(REGISTRAR_RESOURCES.meshes),
  devices: plane.informer(REGISTRAR_RESOURCES.devices),
  pods: plane.informer(REGISTRAR_RESOURCES.pods, { trim: keptPod }),
  namespaces: plane.informer(REGISTRAR_RESOURCES.namespaces, { trim: keptNamespace }),
});
type Informers = ReturnType<typeof openInformers>;

const clusterSources = ({ meshes, devices, pods, namespaces }: Informers, health: TailnetHealth): readonly Source[] => [
  watches<Mesh>(meshes, { keysOf: WHOLE_CLUSTER, fingerprint: meshPrint }),
  watches<TailnetDevice>(devices, { keysOf: WHOLE_CLUSTER, fingerprint: recordPrint }),
  watches(pods, { keysOf: WHOLE_CLUSTER, fingerprint: podPrint }),
  watches(namespaces, { keysOf: WHOLE_CLUSTER, fingerprint: namespacePrint }),
  { connect: (enqueue) => health.on(() => enqueue('cluster')), keys: () => [] },
];

/** All records that rest are tried again when the server answers again. */
const wakingSource = ({ devices }: Informers, health: TailnetHealth, pauses: Pauses): Source => {
  let wokenMs = -Infinity;
  return {
    connect: (enqueue) =>
      health.on(() => {
        if (health.state?.failure || monotonic() - wokenMs < WAKE_EVERY_MS) return;
        wokenMs = monotonic();
        pauses.end();
        for (const record of devices.list()) enqueue(keyOf(record));
      }),
    keys: () => [],
  };
};

/** What the controllers have in common. */
const createShared = (plane: ControlPlane, informers: Informers, namespace: string) => {
  const { recorder } = plane;
  const clients = clientsOf(plane.cluster);
  const metrics = registrarMetrics(plane.stateMetrics);
  const health = createTailnetHealth();
  const records = () => informers.devices.list();
  const state = createTailnetState({
    mesh: () => informers.meshes.get(MESH_NAME),
    ...{ records, health },
    open: createTailnetAccess({
      credentials: createCredentials({ secrets: clients.secrets, namespace }),
      ...{ metrics, health },
    }),
  });
  const status = createStatusWriter(clients.devices, recorder);
  return { clients, metrics, health, records, state, status, now: Date.now, logger: plane.logger };
};

/** Of single records, by their uid. */
const createMemories = () => ({
  keys: createBudget(KEYS, monotonic),
  lookups: createBudget(LOOKUPS, monotonic),
  removals: createBudget(REMOVALS, monotonic),
  misses: createMisses(monotonic),
  removed: createConfirmedRemovals(),
});

const podConditions = (plane: ControlPlane, informers: Informers): Controller => {
  return createController({
    name: 'tailnet-pods',
    sources: [
      watches<TailnetDevice>(informers.devices, { keysOf: (record) => [keyOf(record)], fingerprint: deviceWords }),
      watches(informers.pods, { keysOf: (pod) => [keyOf(pod)], fingerprint: podPrint }),
    ],
    concurrency: RECORDS_AT_A_TIME,
    reconcile: podConditionReconciler({
      record: (key) => informers.devices.get(key),
      pod: (key) => informers.pods.get(key),
      client: plane.cluster.client(REGISTRAR_RESOURCES.pods),
    }),
    ...{ logger: plane.logger, metrics: plane.metrics },
  });
};

const createParts = (config: RegistrarConfig, services: HostServices): readonly HostPart[] => {
  const plane = openControlPlane({ name: 'tailnet-registrar', config, services });
  const informers = openInformers(plane);
  const shared = createShared(plane, informers, config.leaseNamespace);
  const pauses = createPauses(monotonic);
  const { logger, metrics, recorder } = plane;
  const records = createController({
    name: 'tailnet-records',
    sources: clusterSources(informers, shared.health),
    gatherMs: GATHER_MS,
    reconcile: recordsReconciler({
      ...{ ...shared, recorder, writes: createObjectWrites(plane) },
      snapshot: () => ({
        mesh: informers.meshes.get(MESH_NAME),
        records: informers.devices.list(),
        pods: informers.pods.list(),
        namespaces: informers.namespaces.list(),
      }),
    }),
    ...{ logger, metrics },
  });
  const devices = createController({
    name: 'tailnet-devices',
    sources: [
      watches<TailnetDevice>(informers.devices, { keysOf: (record) => [keyOf(record)], fingerprint: stepsPrint }),
      wakingSource(informers, shared.health, pauses),
    ],
    concurrency: RECORDS_AT_A_TIME,
    reconcile: devicesReconciler({
      context: {
        ...{ ...shared, ...createMemories() },
        accessTo: (record) => shared.state.accessTo(record),
      },
      ...{ record: (key) => informers.devices.get(key), pauses },
    }),
    ...{ logger, metrics },
  });
  const sweep = createController({
    name: 'tailnet-sweep',
    sources: [
      watches<Mesh>(informers.meshes, {
        keysOf: WHOLE_CLUSTER,
        fingerprint: ({ spec }) => JSON.stringify(spec.tailnet),
      }),
      { connect: () => {}, keys: WHOLE_CLUSTER },
    ],
    reconcile: sweepReconciler({
      ...{ ...shared, pauses: createPauses(monotonic), intervalMs: config.sweepInterval },
      access: () => shared.state.access(),
      apiURL: () => shared.state.choice().server?.apiURL ?? '',
    }),
    ...{ logger, metrics },
  });
  return [plane.part([records, devices, sweep, podConditions(plane, informers)])];
};

export const registrarModule = (config: RegistrarConfig) => (services: HostServices) =>
  hostModule(() => createParts(config, services));
