import type { Informer, Source } from '@unbounded/controller-runtime';
import type { KubeObject } from '@unbounded/kube';

/**
 * Whether anything has happened that no plan has seen. What we write comes back as changes of the caches, and is no news: a plan that
 * is written leads to the same plan. Only a round can tell, because a change may be heard of before the answer to the write.
 */
export interface News {
  /** The same source, all of whose keys are news. */
  all(source: Source): Source;
  /** Changes of objects that we write, too: updates that leave the fingerprint as it was concern nobody. */
  ofOthers<T extends KubeObject>(
    cache: Pick<Informer<T>, 'on'>,
    key: string,
    fingerprint: (object: T) => string,
  ): Source;
  /** Asks, and begins anew. */
  take(): boolean;
}

export const createNews = (isOwn: (version: string) => boolean): News => {
  let isAny = false;
  let versions: string[] = [];
  return {
    all: (source) => ({
      connect: (enqueue) =>
        source.connect((key) => {
          isAny = true;
          enqueue(key);
        }),
      keys: function* () {
        isAny = true;
        yield* source.keys();
      },
    }),
    ofOthers: (cache, key, fingerprint) => ({
      connect: (enqueue) =>
        cache.on((change) => {
          if (change.type === 'updated' && fingerprint(change.previous) === fingerprint(change.object)) return;
          versions.push(change.object.metadata.resourceVersion ?? '');
          enqueue(key);
        }),
      keys: () => [],
    }),
    take: () => {
      const isNew = isAny || versions.some((version) => !isOwn(version));
      isAny = false;
      versions = [];
      return isNew;
    },
  };
};
