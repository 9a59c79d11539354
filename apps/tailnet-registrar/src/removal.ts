import { TAILNET_DEVICE_FINALIZER, type TailnetDevice } from '@unbounded/crds';
import { ignoreGone } from '@unbounded/kube';
import { leftBehind, type RemovalStep } from '@unbounded/tailnet';

import type { TailnetApi } from './api/tailnet-api.ts';
import { boundElsewhere, DONE, nameOf, type RegistrationContext, type StepResult } from './registration-context.ts';

/** The end of a record: key and device go first, and then the finalizer. Until then the record says what is left. */

const TOO_OFTEN = 'the device is not removed yet: what the record names has changed and was removed too often';

const hasNothing = ({ keyID, deviceID, isSearched }: RemovalStep): boolean =>
  keyID === undefined && deviceID === undefined && !isSearched;

/** What a step removes, in words that are remembered: each key may have made devices that have to be looked for. */
const wordsOf = ({ status }: TailnetDevice, { keyID, deviceID, isSearched }: RemovalStep) => ({
  ...(keyID === undefined ? {} : { key: `key ${keyID}` }),
  ...(deviceID === undefined ? {} : { device: `device ${deviceID}` }),
  ...(isSearched ? { search: `devices of ${status?.keysGiven} keys` } : {}),
});

const notConfirmed = (record: TailnetDevice, step: RemovalStep, confirmed: ReadonlySet<string>): RemovalStep => {
  const { key = '', device = '', search = '' } = wordsOf(record, step);
  const { keyID, deviceID, isSearched } = step;
  return {
    kind: 'remove',
    ...(keyID === undefined || confirmed.has(key) ? {} : { keyID }),
    ...(deviceID === undefined || confirmed.has(device) ? {} : { deviceID }),
    isSearched: isSearched && !confirmed.has(search),
  };
};

/** The key first: nobody logs in by it while devices are looked for. */
const removeFromTailnet = async (
  record: TailnetDevice,
  { keyID, deviceID, isSearched }: RemovalStep,
  { api, context }: { readonly api: TailnetApi; readonly context: RegistrationContext },
  signal: AbortSignal,
): Promise<void> => {
  const { records, logger } = context;
  if (keyID !== undefined) await api.deleteKey(keyID, signal);
  const bound = boundElsewhere(record, records());
  if (deviceID !== undefined && !bound.has(deviceID)) await api.deleteDevice(deviceID, signal);
  if (!isSearched) return;
  for (const { id } of leftBehind(record, await api.devices(signal), bound)) {
    if (id === record.status?.deviceID) continue;
    if (record.spec.isNameAsked) {
      // With its name and tags it may be the device of a pod of another cluster.
      logger.warn(
        { device: nameOf(record), id },
        'a device of the name is left that no record has: delete it if nobody uses it',
      );
      continue;
    }
    await api.deleteDevice(id, signal);
    logger.info({ device: nameOf(record), id }, 'device deleted that its node did not name');
  }
};

/** @returns 0: the control server has none of it any more; else milliseconds until it may be asked again */
const clearTailnet = async (
  record: TailnetDevice,
  step: RemovalStep,
  context: RegistrationContext,
  signal: AbortSignal,
): Promise<number> => {
  const { accessTo, removals, removed } = context;
  const uid = record.metadata.uid ?? '';
  try {
    const access = accessTo(record);
    if (access.kind === 'authKey') return 0; // what it was able to do was said when the device was registered
    const rest = notConfirmed(record, step, removed.of(uid));
    if (hasNothing(rest)) return 0;
    const waitMs = removals.take(uid);
    if (waitMs > 0) return waitMs;
    await removeFromTailnet(record, rest, { api: access.api, context }, signal).catch((error: unknown) => {
      removals.giveBack(uid); // failures have pauses of their own
      throw error;
    });
    removed.add(uid, Object.values(wordsOf(record, step)));
    return 0;
  } catch (error) {
    removed.forget(uid); // it may be that another tailnet has confirmed it
    throw error;
  }
};

/**
 * Without the resourceVersion: the node writes its part of the status whenever it likes, and would keep its record by that. What the removal
 * followed from has to be as it was read. What was absent cannot be tested; it stays absent, since a key or device is written only with
 * the resourceVersion of a record that was not ending yet.
 */
const finalizerPatch = ({ metadata, status }: TailnetDevice) => {
  const { uid, finalizers = [] } = metadata;
  const { keyID, deviceID, keysGiven } = status ?? {};
  const removedBy = Object.entries({ keyID, deviceID, keysGiven }).filter(([, value]) => value !== undefined);
  const rest = finalizers.filter((finalizer) => finalizer !== TAILNET_DEVICE_FINALIZER);
  return [
    { op: 'test', path: '/metadata/uid', value: uid },
    ...removedBy.map(([name, value]) => ({ op: 'test', path: `/status/${name}`, value }) as const),
    { op: 'test', path: '/metadata/finalizers', value: finalizers },
    { op: 'replace', path: '/metadata/finalizers', value: rest },
  ] as const;
};

/** @throws TailnetApiError, CredentialsMissingError, TailnetDoubtedError, ApiError (isInvalid: the record has changed) */
export const removeDevice = async (
  record: TailnetDevice,
  step: RemovalStep,
  context: RegistrationContext,
  signal: AbortSignal,
): Promise<StepResult> => {
  const { name, namespace } = record.metadata;
  const afterMs = hasNothing(step) ? 0 : await clearTailnet(record, step, context, signal);
  if (afterMs > 0) {
    await context.status.write(record, { reason: 'NotRemoved', message: TOO_OFTEN }, signal).catch(ignoreGone);
    return { kind: 'again', afterMs };
  }
  await context.clients.devices.jsonPatch(name, finalizerPatch(record), { namespace, signal }).catch(ignoreGone);
  context.logger.info({ device: nameOf(record), id: step.deviceID }, 'device removed');
  return DONE;
};
