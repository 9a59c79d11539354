import type { Informer } from '@unbounded/controller-runtime';
import type { KubeObject, ResourceClient } from '@unbounded/kube';

type ObjectCache<T extends KubeObject> = Pick<Informer<T>, 'get' | 'list' | 'on'>;

/** A kind whose objects say what the next plan depends on. */
export interface OwnKind<T extends KubeObject> {
  readonly client: ResourceClient<T>;
  readonly cache: ObjectCache<T>;
}

/**
 * What was written and the caches have not shown yet. Who owns an address stands in what the last plan wrote: a plan from before that
 * could name a second owner.
 */
export interface OwnWrites {
  /** The client of the kind, whose writes are expected in the cache from then on. */
  noting<T extends KubeObject>(kind: OwnKind<T>): ResourceClient<T>;
  /** The caches are as new as all writes. */
  areSeen(): boolean;
  /** Whether an object of this version was written by us: told once. */
  isOwn(version: string): boolean;
  /** Expects what the API server has now: what another leader wrote, too, and writes whose answer was lost. */
  refresh(signal: AbortSignal): Promise<void>;
}

interface Expectation {
  /** By what the cache holds. */
  isMet(): boolean;
  /** By an object that the cache has held, or that was deleted. */
  isMetBy(object: KubeObject): boolean;
}

const keyOf = ({ metadata: { namespace, name } }: KubeObject): string =>
  namespace === undefined ? name : `${namespace}/${name}`;

/** The API server numbers all changes of its store in their order; clients may compare them since Kubernetes 1.35, and could before. */
const versionOf = ({ metadata }: KubeObject): bigint => BigInt(metadata.resourceVersion ?? '0');

const shown = <T extends KubeObject>({ cache }: OwnKind<T>, object: T): Expectation => {
  const [key, version] = [keyOf(object), versionOf(object)];
  return {
    isMet: () => {
      const cached = cache.get(key);
      return cached !== undefined && versionOf(cached) >= version;
    },
    isMetBy: (seen) => versionOf(seen) >= version,
  };
};

const gone = <T extends KubeObject>({ cache }: OwnKind<T>, key: string, uid: string | undefined): Expectation => ({
  isMet: () => cache.get(key)?.metadata.uid !== uid || uid === undefined,
  isMetBy: () => false,
});

/** Versions that nobody has asked for; one that is forgotten costs a plan. */
const MOST_VERSIONS = 10_000;

export const createOwnWrites = (kinds: readonly OwnKind<KubeObject>[]): OwnWrites => {
  const expected = new Map<string, Expectation>();
  const versions = new Set<string>();
  const idOf = (kind: OwnKind<KubeObject>, key: string): string => `${kind.client.resource.kind} ${key}`;

  // An object that is deleted right after our write was in the cache for a moment.
  for (const kind of kinds) {
    kind.cache.on(({ object }) => {
      const id = idOf(kind, keyOf(object));
      if (expected.get(id)?.isMetBy(object)) expected.delete(id);
    });
  }

  const noting = <T extends KubeObject>(kind: OwnKind<T>): ResourceClient<T> => {
    const { client, cache } = kind;
    const anyKind = kind as unknown as OwnKind<KubeObject>;
    const note = (object: T): T => {
      expected.set(idOf(anyKind, keyOf(object)), shown(kind, object));
      if (versions.size >= MOST_VERSIONS) versions.clear();
      versions.add(object.metadata.resourceVersion ?? '');
      return object;
    };
    return {
      ...client,
      create: async (object, options) => note(await client.create(object, options)),
      update: async (object, options) => note(await client.update(object, options)),
      mergePatch: async (name, patch, options) => note(await client.mergePatch(name, patch, options)),
      jsonPatch: async (name, patch, options) => note(await client.jsonPatch(name, patch, options)),
      apply: async (object, options) => note(await client.apply(object, options)),
      delete: async (name, options) => {
        await client.delete(name, options);
        const key = options?.namespace === undefined ? name : `${options.namespace}/${name}`;
        expected.set(idOf(anyKind, key), gone(kind, key, options?.uid ?? cache.get(key)?.metadata.uid));
      },
    };
  };

  const expectAll = (kind: OwnKind<KubeObject>, objects: readonly KubeObject[]): void => {
    const keys = new Set(objects.map(keyOf));
    for (const object of objects) expected.set(idOf(kind, keyOf(object)), shown(kind, object));
    for (const cached of kind.cache.list()) {
      const key = keyOf(cached);
      if (!keys.has(key)) expected.set(idOf(kind, key), gone(kind, key, cached.metadata.uid));
    }
  };

  return {
    noting,
    areSeen: () => {
      for (const [id, expectation] of expected) if (expectation.isMet()) expected.delete(id);
      return expected.size === 0;
    },
    isOwn: (version) => versions.delete(version),
    refresh: async (signal) => {
      const listed = await Promise.all(kinds.map(({ client }) => client.listAll({ signal })));
      expected.clear();
      for (const [index, kind] of kinds.entries()) expectAll(kind, listed[index]!);
    },
  };
};
