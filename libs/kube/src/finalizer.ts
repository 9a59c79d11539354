import type { ResourceClient } from './client.ts';
import type { KubeObject } from './objects.ts';

export interface FinalizerOptions {
  readonly name: string;
  readonly isPresent: boolean;
  readonly signal?: AbortSignal;
}

/**
 * Adds or removes one finalizer, if the object shows otherwise; others stay. An object that is being deleted takes no
 * new ones. @throws ApiError (isConflict when the object has changed since it was read)
 */
export const setFinalizer = async <T extends KubeObject>(
  client: ResourceClient<T>,
  { metadata }: T,
  { name, isPresent, signal }: FinalizerOptions,
): Promise<void> => {
  const { finalizers = [], resourceVersion, uid } = metadata;
  if (finalizers.includes(name) === isPresent || (isPresent && metadata.deletionTimestamp !== undefined)) return;
  const next = isPresent ? [...finalizers, name] : finalizers.filter((entry) => entry !== name);
  await client.mergePatch(
    metadata.name,
    { metadata: { uid, resourceVersion, finalizers: next } },
    signal ? { signal } : {},
  );
};
