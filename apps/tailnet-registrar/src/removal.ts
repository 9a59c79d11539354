import { TAILNET_DEVICE_FINALIZER, type TailnetDevice } from '@unbounded/crds';
import { ignoreGone } from '@unbounded/kube';
import { leftBehind, type RemovalStep } from '@unbounded/tailnet';

import { boundElsewhere, DONE, nameOf, type RegistrationContext, type StepResult } from './registration-context.ts';

/** The end of a record: key and device go first, and then the finalizer. Until then the record says what is left. */

const hasNothing = ({ keyID, deviceID, isSearched }: RemovalStep): boolean =>
  keyID === undefined && deviceID === undefined && !isSearched;

/** The key first: nobody logs in by it while devices are looked for. */
const removeFromTailnet = async (
  record: TailnetDevice,
  { keyID, deviceID, isSearched }: RemovalStep,
  { accessTo, records, logger }: RegistrationContext,
  signal: AbortSignal,
): Promise<void> => {
  const access = accessTo(record);
  if (access.kind === 'authKey') return; // what it was able to do was said when the device was registered
  const { api } = access;
  if (keyID !== undefined) await api.deleteKey(keyID, signal);
  const bound = boundElsewhere(record, records());
  if (deviceID !== undefined && !bound.has(deviceID)) await api.deleteDevice(deviceID, signal);
  if (!isSearched) return;
  for (const { id } of leftBehind(record, await api.devices(signal), bound)) {
    if (id === deviceID) continue;
    await api.deleteDevice(id, signal);
    logger.info({ device: nameOf(record), id }, 'device deleted that its node did not name');
  }
};

/** @throws TailnetApiError, CredentialsMissingError, TailnetDoubtedError, ApiError (isConflict) */
export const removeDevice = async (
  record: TailnetDevice,
  step: RemovalStep,
  context: RegistrationContext,
  signal: AbortSignal,
): Promise<StepResult> => {
  if (!hasNothing(step)) await removeFromTailnet(record, step, context, signal);
  const { name, namespace, uid, resourceVersion, finalizers = [] } = record.metadata;
  const rest = finalizers.filter((finalizer) => finalizer !== TAILNET_DEVICE_FINALIZER);
  // With the resourceVersion: a key that was given since then is still to be deleted.
  const patch = { metadata: { uid, resourceVersion, finalizers: rest } };
  await context.clients.devices.mergePatch(name, patch, { namespace, signal }).catch(ignoreGone);
  context.logger.info({ device: nameOf(record), id: step.deviceID }, 'device removed');
  return DONE;
};
