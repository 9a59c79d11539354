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
import { doubtText, unknownRecords } from './tailnet-doubt.ts';
import { tailnetFailure, type TailnetHealth } from './tailnet-health.ts';

/** Devices that were removed or have expired at the control server are noticed: their nodes ask for another key then. */

export interface SweepOptions {
  readonly records: () => readonly TailnetDevice[];
  /** Undefined: there is no tailnet. @throws CredentialsMissingError */
  readonly access: () => TailnetAccess | undefined;
  /** As an administrator knows the control server. */
  readonly apiURL: () => string;
  readonly health: Pick<TailnetHealth, 'doubt' | 'setDoubt'>;
  readonly status: StatusWriter;
  readonly pauses: Pauses;
  readonly intervalMs: number;
  readonly logger: Logger;
  /** Wall clock, milliseconds. */
  readonly now: () => number;
}

const PARALLEL_LOOKUPS = 5;
/** Somebody corrects the credentials: that is noticed sooner than a device that is gone. */
const DOUBTED_INTERVAL_MS = 30_000;
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

/** A list may be behind the registrations; then it lacks few devices, and some of these are found by their IDs. */
const isAnyThere = async (
  records: readonly TailnetDevice[],
  api: TailnetApi,
  signal: AbortSignal,
): Promise<boolean> => {
  const found = await Promise.all(
    records.slice(0, PARALLEL_LOOKUPS).map(({ status }) => api.device(status!.deviceID!, signal)),
  );
  return found.some((device) => device !== undefined);
};

/** @returns whether the list may be that of another tailnet */
const checkTailnet = async (
  bound: readonly TailnetDevice[],
  { listed, api }: { readonly listed: ReadonlyMap<string, ListedDevice>; readonly api: TailnetApi },
  { records, health, apiURL, logger }: SweepOptions,
  signal: AbortSignal,
): Promise<boolean> => {
  const unknownOf = (some: readonly TailnetDevice[]) =>
    unknownRecords({ records: some, listed, isDoubted: health.doubt !== undefined });
  let unknown = unknownOf(bound);
  if (unknown.length > 0 && (await isAnyThere(unknown, api, signal))) unknown = [];
  // We may have removed some of them meanwhile.
  const ids = new Set(unknown.map(({ status }) => status!.deviceID));
  unknown = unknownOf(records().filter(({ status }) => status?.deviceID !== undefined && ids.has(status.deviceID)));
  const message = unknown.length > 0 ? doubtText(unknown.length, apiURL()) : undefined;
  if (message !== undefined && message !== health.doubt) logger.error({ devices: unknown.length }, message);
  health.setDoubt(message);
  return message !== undefined;
};

/** @returns when to list again, milliseconds */
const sweep = async (options: SweepOptions, api: TailnetApi, signal: AbortSignal): Promise<number> => {
  const { intervalMs, now } = options;
  // Before the list: what is registered later may be newer than it.
  const bound = options.records().filter(({ status }) => status?.deviceID !== undefined);
  const listed = new Map((await api.devices(signal)).map((device) => [device.id, device]));
  if (await checkTailnet(bound, { listed, api }, options, signal)) return Math.min(intervalMs, DOUBTED_INTERVAL_MS);
  const gone = bound.filter(
    ({ metadata, status }) => metadata.deletionTimestamp === undefined && isGone(listed.get(status!.deviceID!), now()),
  );
  await inParallel(gone, PARALLEL_LOOKUPS, (record) => endRegistration(record, api, options, signal));
  return intervalMs;
};

/** One key. It lists without records, too: that wrong credentials are known before the first pod needs them. */
export const sweepReconciler = (options: SweepOptions): Reconcile => {
  const { access, health, pauses, intervalMs, logger } = options;
  return async (_key, signal) => {
    const restMs = pauses.restMs(KEY);
    if (restMs > 0) return again(restMs);
    try {
      const current = access();
      let afterMs = intervalMs;
      if (current?.kind === 'api') afterMs = await sweep(options, current.api, signal);
      else {
        health.setDoubt(undefined);
        await current?.authKey(signal);
      }
      pauses.succeed(KEY);
      return again(afterMs);
    } catch (error) {
      // Of a single look-up as well: the list said nothing wrong, and the next sweep asks again.
      const failure = tailnetFailure(error instanceof AggregateError ? error.errors[0] : error);
      if (!failure) throw error;
      logger.warn({ reason: failure.reason, message: failure.message }, 'devices of the tailnet not listed');
      return again(pauses.fail(KEY, BACKOFF, failure.retryAfterMs));
    }
  };
};
