import { again, type BackoffOptions, inParallel, type Reconcile } from '@unbounded/controller-runtime';
import type { TailnetDevice } from '@unbounded/crds';
import { ignoreGone, isConflict } from '@unbounded/kube';
import { hasExpired, type ListedDevice } from '@unbounded/tailnet';
import type { Logger } from '@unbounded/telemetry';

import type { TailnetApi } from './api/tailnet-api.ts';
import type { StatusWriter } from './device-status.ts';
import type { Pauses } from './pauses.ts';
import { nameOf } from './registration-context.ts';
import type { TailnetAccess } from './tailnet-access.ts';
import { tailnetFailure } from './tailnet-health.ts';

/** Devices that were removed or have expired at the control server are noticed: their nodes ask for another key then. */

export interface SweepOptions {
  readonly records: () => readonly TailnetDevice[];
  /** Undefined: there is no tailnet. @throws CredentialsMissingError */
  readonly access: () => TailnetAccess | undefined;
  readonly status: StatusWriter;
  readonly pauses: Pauses;
  readonly intervalMs: number;
  readonly logger: Logger;
  /** Wall clock, milliseconds. */
  readonly now: () => number;
}

const PARALLEL_LOOKUPS = 5;
const BACKOFF: BackoffOptions = { baseMs: 1000, maxMs: 30_000 };
const KEY = 'sweep';

const isGone = (device: ListedDevice | undefined, nowMs: number): boolean =>
  device === undefined || hasExpired(device, nowMs);

/** What the list lacks is looked up by itself before it counts as gone. */
const endRegistration = async (
  record: TailnetDevice,
  api: TailnetApi,
  { status, logger, now }: SweepOptions,
  signal: AbortSignal,
): Promise<void> => {
  const id = record.status!.deviceID!;
  const device = await api.device(id, signal);
  if (!isGone(device, now())) return;
  const message = device
    ? `device ${id} has expired at ${device.expires}: its node logs in anew`
    : `device ${id} was removed at the control server: its node logs in anew`;
  await status
    .write(record, { reason: 'DeviceGone', message, fields: { deviceID: null, goneID: id } }, signal)
    .catch(ignoreGone)
    .catch((error: unknown) => {
      if (!isConflict(error)) throw error; // the next sweep sees what has changed
    });
  logger.warn({ device: nameOf(record), id }, 'device is gone at the control server');
};

const sweep = async (options: SweepOptions, api: TailnetApi, signal: AbortSignal): Promise<void> => {
  // Before the list: what is registered later may be newer than it.
  const records = options
    .records()
    .filter(({ metadata, status }) => status?.deviceID !== undefined && metadata.deletionTimestamp === undefined);
  const listed = new Map((await api.devices(signal)).map((device) => [device.id, device]));
  const gone = records.filter(({ status }) => isGone(listed.get(status!.deviceID!), options.now()));
  await inParallel(gone, PARALLEL_LOOKUPS, (record) => endRegistration(record, api, options, signal));
};

/** One key. It lists without records, too: that wrong credentials are known before the first pod needs them. */
export const sweepReconciler = (options: SweepOptions): Reconcile => {
  const { access, pauses, intervalMs, logger } = options;
  return async (_key, signal) => {
    const restMs = pauses.restMs(KEY);
    if (restMs > 0) return again(restMs);
    try {
      const current = access();
      if (current?.kind === 'api') await sweep(options, current.api, signal);
      else await current?.authKey(signal);
      pauses.succeed(KEY);
      return again(intervalMs);
    } catch (error) {
      // Of a single look-up as well: the list said nothing wrong, and the next sweep asks again.
      const failure = tailnetFailure(error instanceof AggregateError ? error.errors[0] : error);
      if (!failure) throw error;
      logger.warn({ reason: failure.reason, message: failure.message }, 'devices of the tailnet not listed');
      return again(pauses.fail(KEY, BACKOFF, failure.retryAfterMs));
    }
  };
};
