import { type Condition, sameJson } from '@unbounded/crds';

import type { ResourceClient } from './client.ts';
import { changedConditions, type NewCondition, withCondition } from './conditions.ts';
import type { EventRecorder } from './event-recorder.ts';
import type { KubeObject } from './objects.ts';
import { CONDITION_BOUNDS, cutTexts, NODE_CONDITION_BOUNDS } from './text-bounds.ts';

interface StatusUpdate {
  /** Fields of the status besides conditions; all that this program owns. */
  readonly fields?: object;
  /** The conditions that this program owns, all of them. */
  readonly conditions: readonly NewCondition[];
  /** Types of conditions of this program that are to be gone. */
  readonly withdrawn?: readonly string[];
}

export interface ApplyStatusOptions {
  /** The program: the owner of the fields. Other programs' fields and conditions stay. */
  readonly fieldManager: string;
  readonly signal?: AbortSignal;
  /** Gets an Event for every condition that turns bad, says something else of what is bad, or turns good again. */
  readonly recorder?: EventRecorder;
  /** Refused as a conflict if the object has changed since it was read: for a status that says what its own next one depends on. */
  readonly onlyIfUnchanged?: boolean;
}

type HasStatus = KubeObject & { readonly status?: { readonly conditions?: readonly Condition[] } };

const hasFields = (status: object | undefined, fields: object): boolean =>
  Object.entries(fields).every(([name, value]) =>
    sameJson((status as Record<string, unknown> | undefined)?.[name], value),
  );

const recordChanges = (object: HasStatus, changed: readonly NewCondition[], recorder: EventRecorder): void => {
  for (const { type, status, reason, message } of changed) {
    const before = object.status?.conditions?.find((entry) => entry.type === type);
    const isSame = before?.status === status && before.reason === reason && before.message === message;
    const isNews = status === 'False' ? !isSame : before?.status === 'False';
    if (!isNews) continue;
    recorder.record({
      about: object,
      type: status === 'False' ? 'Warning' : 'Normal',
      reason,
      action: type,
      note: message,
    });
  }
};

/** Texts name what others wrote; one that is too long must not have the rest of the status refused. */
const boundsOf = ({ kind }: HasStatus): Parameters<typeof cutTexts<NewCondition>>[1] =>
  kind === 'Node' ? NODE_CONDITION_BOUNDS : CONDITION_BOUNDS;

/**
 * Writes the part of an object's status that this program owns, if it differs from what the object shows, by
 * server-side apply. Returns whether it wrote.
 */
export const applyStatus = async <T extends HasStatus>(
  client: ResourceClient<T>,
  object: T,
  { fields = {}, conditions, withdrawn = [] }: StatusUpdate,
  { fieldManager, signal, recorder, onlyIfUnchanged = false }: ApplyStatusOptions,
): Promise<boolean> => {
  const existing = object.status?.conditions;
  const wanted = conditions.map((condition) => cutTexts(condition, boundsOf(object)));
  const changed = changedConditions(existing, wanted);
  const isStale = existing?.some(({ type }) => withdrawn.includes(type)) ?? false;
  if (changed.length === 0 && !isStale && hasFields(object.status, fields)) return false;
  const now = new Date();
  const owned = wanted.map((next) => withCondition(existing, next, now).find(({ type }) => type === next.type)!);
  const { apiVersion, kind, metadata } = object;
  const { name, namespace, uid, resourceVersion } = metadata;
  // The uid makes it fail rather than write to a namesake that was created meanwhile.
  const identity = { name, ...(namespace === undefined ? {} : { namespace }), ...(uid ? { uid } : {}) };
  const precondition = onlyIfUnchanged && resourceVersion !== undefined ? { resourceVersion } : {};
  await client.apply(
    {
      apiVersion,
      kind,
      metadata: { ...identity, ...precondition },
      status: { ...fields, conditions: owned },
    } as KubeObject,
    { fieldManager, force: true, subresource: 'status', ...(signal ? { signal } : {}) },
  );
  if (recorder) recordChanges(object, changed, recorder);
  return true;
};
