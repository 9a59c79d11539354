import { createHash } from 'node:crypto';

import { inParallel, type ObjectWrites } from '@unbounded/controller-runtime';
import { MESH_NAME, type TailnetDevice } from '@unbounded/crds';
import { ignoreGone, isConflict } from '@unbounded/kube';
import { chooseTailnet, recordEndOf, type RecordEnd, type RecordsPlan } from '@unbounded/tailnet';
import type { Logger } from '@unbounded/telemetry';

import { keyOf, type RegistrarClients, tailnetPodOf } from './registrar-objects.ts';

export interface RecordWriteOptions {
  readonly clients: Pick<RegistrarClients, 'devices' | 'pods' | 'meshes'>;
  readonly writes: ObjectWrites;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

const PARALLEL_WRITES = 8;

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

const livePod = async (
  { metadata: { namespace = '' }, spec }: TailnetDevice,
  { clients, signal }: RecordWriteOptions,
) => {
  const pod = await clients.pods.get(spec.pod, { namespace, signal }).catch(ignoreGone);
  return pod && tailnetPodOf(pod);
};

/** A record that is made for a pod that is gone would have to be removed again, and its name is another pod's meanwhile. */
const create = async (record: TailnetDevice, options: RecordWriteOptions): Promise<void> => {
  const pod = await livePod(record, options);
  if (recordEndOf(record, pod, true) !== undefined || pod?.isBeingDeleted !== false) return;
  try {
    await options.clients.devices.create(record, { signal: options.signal });
    options.logger.info({ device: keyOf(record), name: record.spec.hostName, node: record.spec.node }, 'record made');
  } catch (error) {
    if (!isConflict(error)) throw error; // it is there already: the cache will show it
  }
};

/** By the API server as it is right now: a device that is removed does not come back with its address. */
const isOver = async (record: TailnetDevice, reason: RecordEnd, options: RecordWriteOptions): Promise<boolean> => {
  const { clients, signal } = options;
  if (reason !== 'TailnetGone') return recordEndOf(record, await livePod(record, options), true) !== undefined;
  const mesh = await clients.meshes.get(MESH_NAME, { signal }).catch(ignoreGone);
  return mesh !== undefined && chooseTailnet(mesh.spec.tailnet, mesh.status?.tailnet, true).settings === undefined;
};

const remove = async (record: TailnetDevice, reason: RecordEnd, options: RecordWriteOptions): Promise<void> => {
  if (!(await isOver(record, reason, options))) return;
  const { name, namespace, uid } = record.metadata;
  const precondition = uid === undefined ? {} : { uid };
  const place = { namespace, signal: options.signal };
  await options.clients.devices.delete(name, { ...place, ...precondition }).catch(ignoreGone);
  options.logger.info({ device: keyOf(record), reason }, 'record ends');
};

/** Each on its own: what cannot be written keeps nothing else. */
export const writeRecords = async (
  { creates, deletes }: Pick<RecordsPlan, 'creates' | 'deletes'>,
  options: RecordWriteOptions,
): Promise<void> => {
  const { writes } = options;
  await inParallel(deletes, PARALLEL_WRITES, ({ record, reason }) =>
    writes.attempt(record, 'the end of the record', () => remove(record, reason, options)),
  );
  await inParallel(creates, PARALLEL_WRITES, (record) =>
    writes.attempt(record, 'the record', () => create(record, options)),
  );
};
