import { again, type ObjectWrites, type Reconcile } from '@unbounded/controller-runtime';
import type { Mesh, TailnetDevice } from '@unbounded/crds';
import type { EventRecorder, Namespace, Pod } from '@unbounded/kube';
import { planRecords, type RecordsInput, type RecordsPlan } from '@unbounded/tailnet';
import type { Logger } from '@unbounded/telemetry';

import { writeMeshStatus } from './mesh-status.ts';
import { sha256, writeRecords } from './records.apply.ts';
import { createRefusals } from './refusals.ts';
import { type RegistrarClients, tailnetPodOf } from './registrar-objects.ts';
import type { RegistrarMetrics } from './registrar-metrics.ts';
import type { TailnetHealth } from './tailnet-health.ts';
import type { TailnetState } from './tailnet-state.ts';

/** What the caches hold. */
interface RegistrarSnapshot {
  readonly mesh: Mesh | undefined;
  readonly records: readonly TailnetDevice[];
  readonly pods: readonly Pod[];
  readonly namespaces: readonly Namespace[];
}

export interface RecordsReconcilerOptions {
  readonly snapshot: () => RegistrarSnapshot;
  readonly state: TailnetState;
  readonly health: TailnetHealth;
  readonly clients: Pick<RegistrarClients, 'devices' | 'pods' | 'meshes'>;
  readonly writes: ObjectWrites;
  readonly recorder: EventRecorder;
  readonly metrics: RegistrarMetrics;
  readonly logger: Logger;
}

const CACHE_BEHIND_MS = 500;

/** One key stands for the cluster: a name is free only with a view of all records. */
export const recordsReconciler = (options: RecordsReconcilerOptions): Reconcile => {
  const { snapshot, state, health, clients, writes, recorder, metrics } = options;
  const refusals = createRefusals(recorder);

  /** Names are given by all records that there are, also those that a cache or the leader before has not seen. */
  const plan = async (input: RecordsInput, signal: AbortSignal): Promise<RecordsPlan> => {
    const planned = planRecords(input);
    if (planned.creates.length === 0) return planned;
    return planRecords({ ...input, records: await clients.devices.listAll({ signal }) });
  };

  /** What there are devices in stays known while there is a record, whatever a cache shows. @returns whether the cache does */
  const tellMesh = async (mesh: Mesh, signal: AbortSignal): Promise<boolean> => {
    const choice = state.choice();
    const kept = mesh.status?.tailnet;
    const isOther = kept?.controlURL !== choice.server?.controlURL || kept?.apiURL !== choice.server?.apiURL;
    if (kept && isOther && (await clients.devices.listAll({ signal })).length > 0) return false;
    await writeMeshStatus(mesh, choice, health.state, { client: clients.meshes, recorder, signal });
    return true;
  };

  return async (_key, signal) => {
    const { mesh, records, pods, namespaces } = snapshot();
    // Else the cache lacks records of the tailnet before: it will show them.
    if (mesh && !(await tellMesh(mesh, signal))) return again(CACHE_BEHIND_MS);
    const { settings } = state.choice();
    const planned = await plan(
      {
        ...{ settings, hasMesh: mesh !== undefined, records, pods: pods.map(tailnetPodOf), digestOf: sha256 },
        namespaces: new Map(namespaces.map(({ metadata }) => [metadata.name, metadata.labels ?? {}])),
      },
      signal,
    );
    // While one tailnet is given up for another one, pods wait.
    if (settings || !mesh?.spec.tailnet) refusals.tell(planned.refusals);
    metrics.observed(records);
    await writeRecords(planned, { ...options, signal });
    return writes.verdict();
  };
};
