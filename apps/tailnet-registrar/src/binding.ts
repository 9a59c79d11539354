import type { TailnetDevice } from '@unbounded/crds';
import { hasExpired, strangenessOf } from '@unbounded/tailnet';

import {
  boundElsewhere,
  DONE,
  nameOf,
  NEXT,
  type RegistrationContext,
  type StepResult,
} from './registration-context.ts';

/**
 * The device that a node names becomes that of the record, if it can only have come by a key of the record: a node could name any
 * device, and the one of a record is deleted with it.
 */

/** @throws TailnetApiError, CredentialsMissingError, TailnetDoubtedError, ApiError (isConflict) */
export const bindDevice = async (
  record: TailnetDevice,
  deviceID: string,
  context: RegistrationContext,
  signal: AbortSignal,
): Promise<StepResult> => {
  const { status, lookups, misses, logger, now } = context;
  const access = context.accessTo(record);
  if (access.kind === 'authKey') return acceptUnseen(record, deviceID, context, signal);
  const uid = record.metadata.uid ?? '';
  // A device that has just logged in may be unknown to the API for a moment.
  const restMs = misses.restMs(uid, deviceID);
  if (restMs > 0) return { kind: 'next', afterMs: restMs };
  const waitMs = lookups.take(uid);
  if (waitMs > 0) return { kind: 'again', afterMs: waitMs };

  const refuse = async (reason: 'ForeignDevice' | 'DeviceGone', message: string): Promise<StepResult> => {
    const afterMs = misses.miss(uid, deviceID);
    await status.write(record, { reason, message }, signal);
    return { kind: 'next', afterMs };
  };

  if (boundElsewhere(record, context.records()).has(deviceID))
    return refuse('ForeignDevice', `device ${deviceID}, which node ${record.spec.node} names, is that of another pod`);
  const device = await access.api.device(deviceID, signal);
  if (!device) return refuse('DeviceGone', `there is no device ${deviceID}, which node ${record.spec.node} names`);
  const strangeness =
    device.id === deviceID ? strangenessOf(record, device) : `its ID is ${JSON.stringify(device.id)}, not ${deviceID}`;
  if (strangeness !== undefined)
    return refuse(
      'ForeignDevice',
      `device ${deviceID}, which node ${record.spec.node} names, is another one: ${strangeness}`,
    );
  if (hasExpired(device, now())) return refuse('DeviceGone', `device ${deviceID} has expired at ${device.expires}`);

  const former = record.status ?? {};
  if (former.deviceID !== undefined && former.deviceID !== deviceID)
    await access.api.deleteDevice(former.deviceID, signal);
  // It may be unused: a node could log in another device by it.
  if (former.keyID !== undefined) await access.api.deleteKey(former.keyID, signal);
  await status.write(
    record,
    {
      ...{ reason: 'Registered', message: `device ${deviceID}` },
      fields: { deviceID, goneID: null, keyID: null, sealedKey: null },
    },
    signal,
  );
  misses.forget(uid);
  logger.info({ device: nameOf(record), id: deviceID, former: former.deviceID }, 'device registered');
  return DONE;
};

/** An auth key can look nothing up and remove nothing: what the node says is told, and not taken for the ID of the device. */
const acceptUnseen = async (
  record: TailnetDevice,
  deviceID: string,
  { status }: RegistrationContext,
  signal: AbortSignal,
): Promise<StepResult> => {
  if (record.status?.state === 'NeedsLogin') return NEXT;
  const message = `device ${deviceID}, as node ${record.spec.node} says; by an auth key it is neither looked up nor removed: give the Mesh an OAuth client for that`;
  const fields = record.status?.sealedKey === undefined ? {} : { fields: { sealedKey: null } };
  await status.write(record, { reason: 'Registered', message, ...fields }, signal);
  return DONE;
};
