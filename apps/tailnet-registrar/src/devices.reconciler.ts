import { again, type BackoffOptions, done, type Reconcile } from '@unbounded/controller-runtime';
import type { TailnetDevice } from '@unbounded/crds';
import { ignoreGone } from '@unbounded/kube';
import { planRegistration, type RegistrationStep } from '@unbounded/tailnet';

import { bindDevice } from './binding.ts';
import type { RegisteredReason } from './device-status.ts';
import { giveKey } from './key-giving.ts';
import type { Pauses } from './pauses.ts';
import type { RegistrationContext, StepResult } from './registration-context.ts';
import { removeDevice } from './removal.ts';
import { type TailnetFailure, tailnetFailure } from './tailnet-health.ts';

export interface DevicesReconcilerOptions {
  readonly context: RegistrationContext;
  /** By key; what the cache holds. */
  readonly record: (key: string) => TailnetDevice | undefined;
  readonly pauses: Pauses;
}

/** A server that is back is asked within ten seconds. */
const AWAY: BackoffOptions = { baseMs: 500, maxMs: 8000 };
/** Somebody has to correct something: that is noticed within a minute. */
const REFUSED: BackoffOptions = { baseMs: 2000, maxMs: 30_000 };

const backoffOf = ({ reason }: TailnetFailure): BackoffOptions =>
  reason === 'ControlServerUnreachable' ? AWAY : REFUSED;

const take = (
  step: RegistrationStep,
  record: TailnetDevice,
  context: RegistrationContext,
  signal: AbortSignal,
): Promise<StepResult> => {
  if (step.kind === 'remove') return removeDevice(record, step, context, signal);
  if (step.kind === 'bind') return bindDevice(record, step.deviceID, context, signal);
  return giveKey(record, step.publicKey, context, signal);
};

/** Keys are records, each on its own: a slow request delays none of the others. */
export const devicesReconciler = ({ context, record: recordOf, pauses }: DevicesReconcilerOptions): Reconcile => {
  const { status, clients, now } = context;

  const forget = (uid: string): void => {
    const { keys, lookups, misses, removals, removed } = context;
    for (const memory of [keys, lookups, misses, removals, removed]) memory.forget(uid);
  };

  /** Of a record that waits for its node. */
  const tellWaiting = async (record: TailnetDevice, signal: AbortSignal): Promise<void> => {
    if (record.metadata.deletionTimestamp !== undefined || (record.status?.conditions?.length ?? 0) > 0) return;
    const message = `node ${record.spec.node} has not asked for a key yet`;
    await status.write(record, { reason: 'WaitingForNode', message }, signal).catch(ignoreGone);
  };

  const takeSteps = async (record: TailnetDevice, signal: AbortSignal) => {
    const { steps, againMs = Infinity } = planRegistration(record, now());
    let afterMs = againMs;
    for (const step of steps) {
      const result = await take(step, record, context, signal);
      if (result.kind !== 'done') afterMs = Math.min(afterMs, result.afterMs ?? Infinity);
      if (result.kind !== 'next') break;
    }
    return Number.isFinite(afterMs) ? again(afterMs) : done;
  };

  const tellFailure = async (record: TailnetDevice, failure: TailnetFailure, signal: AbortSignal): Promise<void> => {
    const isRemoval = record.metadata.deletionTimestamp !== undefined;
    const reason = isRemoval ? 'NotRemoved' : (failure.reason as RegisteredReason);
    const message = isRemoval ? `the device is not removed yet: ${failure.message}` : failure.message;
    // A device that is registered and needs nothing stays so while its server is away.
    const isRegistered = record.status?.deviceID !== undefined && record.status.state !== 'NeedsLogin' && !isRemoval;
    if (!isRegistered) await status.write(record, { reason, message }, signal).catch(ignoreGone);
  };

  return async (key, signal) => {
    const cached = recordOf(key);
    if (!cached) return done;
    if (planRegistration(cached, now()).steps.length === 0) {
      await tellWaiting(cached, signal);
      return takeSteps(cached, signal);
    }
    const uid = cached.metadata.uid ?? '';
    // The end of a record does not wait for what was in the way of its beginning.
    const pause = `${uid} ${cached.metadata.deletionTimestamp ?? ''}`;
    const restMs = pauses.restMs(pause);
    if (restMs > 0) return again(restMs);
    const { name, namespace } = cached.metadata;
    // Keys and devices are given and removed by what the API server has, not by a cache.
    const record = await clients.devices.get(name, { namespace, signal }).catch(ignoreGone);
    if (!record || record.metadata.uid !== uid) {
      forget(uid);
      return done;
    }
    try {
      const verdict = await takeSteps(record, signal);
      pauses.succeed(pause);
      if (record.metadata.deletionTimestamp !== undefined && verdict.kind === 'done') forget(uid);
      return verdict;
    } catch (error) {
      const failure = tailnetFailure(error);
      if (!failure) throw error;
      const afterMs = pauses.fail(pause, backoffOf(failure), failure.retryAfterMs);
      context.logger.warn({ device: key, reason: failure.reason, message: failure.message, afterMs }, 'retried later');
      await tellFailure(record, failure, signal);
      return again(afterMs);
    }
  };
};
