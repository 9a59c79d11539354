import { type Condition, sameJson } from '@unbounded/crds';

import { type ResourceClient } from './client.ts';
import { changedConditions, type NewCondition, withCondition } from './conditions.ts';
import { type KubeObject } from './objects.ts';

interface StatusUpdate {
  /** Fields of the status besides conditions; all that this program owns. */
  readonly fields?: object;
  /** The conditions that this program owns, all of them. */
  readonly conditions: readonly NewCondition[];
}

export interface ApplyStatusOptions {
  /** The program: the owner of the fields. Other programs' fields and conditions stay. */
  readonly fieldManager: string;
  readonly signal?: AbortSignal;
}

type HasStatus = KubeObject & { readonly status?: { readonly conditions?: readonly Condition[] } };

const hasFields = (status: object | undefined, fields: object): boolean =>
  Object.entries(fields).every(([name, value]) =>
    sameJson((status as Record<string, unknown> | undefined)?.[name], value),
  );

/**
 * Writes the part of an object's status that this program owns, if it differs from what the object shows, by
 * server-side apply. Returns whether it wrote.
 */
export const applyStatus = async <T extends HasStatus>(
  client: ResourceClient<T>,
  object: T,
  { fields = {}, conditions }: StatusUpdate,
  { fieldManager, signal }: ApplyStatusOptions,
): Promise<boolean> => {
  const existing = object.status?.conditions;
  if (changedConditions(existing, conditions).length === 0 && hasFields(object.status, fields)) return false;
  const now = new Date();
  const owned = conditions.map((next) => withCondition(existing, next, now).find(({ type }) => type === next.type)!);
  const { apiVersion, kind, metadata } = object;
  const { name, uid } = metadata;
  await client.apply(
    // The uid makes it fail rather than write to a namesake that was created meanwhile.
    {
      apiVersion,
      kind,
      metadata: { name, ...(uid ? { uid } : {}) },
      status: { ...fields, conditions: owned },
    } as KubeObject,
    { fieldManager, force: true, subresource: 'status', ...(signal ? { signal } : {}) },
  );
  return true;
};
