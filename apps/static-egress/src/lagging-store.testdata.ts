import type { Informer } from '@unbounded/controller-runtime';
import { ApiError, type KubeObject, type ResourceClient } from '@unbounded/kube';

type Handler<T extends KubeObject> = Parameters<Informer<T>['on']>[0];

/** Objects of one kind with versions and preconditions, and a cache of them that is as old as the test wants. */
export interface LaggingStore<T extends KubeObject> {
  readonly client: ResourceClient<T>;
  readonly cache: Informer<T>;
  /** Writes so far: `create n1-0`. */
  readonly writes: string[];
  /** Called before each write; what it throws refuses the write. */
  onWrite: (name: string) => void;
  /** What the API server has. */
  readonly objects: ReadonlyMap<string, T>;
  /** A write by somebody else. */
  put(object: T): void;
  /** The cache hears of everything. */
  catchUp(): void;
}

export const conflict = (): ApiError => new ApiError('test', 409, { reason: 'Conflict', message: 'conflict' });
export const invalid = (): ApiError => new ApiError('test', 422, { reason: 'Invalid', message: 'invalid' });

let version = 0;

const stamped = <T extends KubeObject>(object: T, before: T | undefined): T => {
  const metadata = { uid: `uid-${object.metadata.name}-${version}`, ...object.metadata };
  const uid = before?.metadata.uid ?? metadata.uid;
  return { ...before, ...object, metadata: { ...metadata, uid, resourceVersion: String(++version) } };
};

export const laggingStore = <T extends KubeObject>(kind: string, ...initial: readonly T[]): LaggingStore<T> => {
  const objects = new Map<string, T>();
  const cached = new Map<string, T>();
  const handlers: Handler<T>[] = [];
  const check = (verb: string, name: string, expected: string | undefined): void => {
    store.onWrite(name);
    const now = objects.get(name)?.metadata.resourceVersion;
    if (expected !== undefined && expected !== now) throw conflict();
    store.writes.push(`${verb} ${name}`);
  };
  const put = (object: T): T => {
    const written = stamped(object, objects.get(object.metadata.name));
    objects.set(object.metadata.name, written);
    return written;
  };
  const client: Partial<ResourceClient<T>> = {
    resource: { kind, group: '', version: 'v1', plural: '', isNamespaced: false },
    get: async (name) => objects.get(name)!,
    listAll: async () => [...objects.values()],
    listMetadata: async () => [...objects.values()],
    create: async (object) => {
      check('create', object.metadata.name, undefined);
      return put(object);
    },
    update: async (object) => {
      check('update', object.metadata.name, object.metadata.resourceVersion);
      return put(object);
    },
    apply: async (object) => {
      check('apply', object.metadata.name, object.metadata.resourceVersion);
      return put(object as T);
    },
    delete: async (name, options) => {
      check('delete', name, options?.resourceVersion);
      objects.delete(name);
    },
  };
  const store: LaggingStore<T> = {
    client: client as ResourceClient<T>,
    cache: {
      name: kind,
      get: (key) => cached.get(key),
      list: () => [...cached.values()],
      byIndex: () => [],
      on: (handler) => void handlers.push(handler),
      isSynced: true,
      synced: Promise.resolve(),
      lostAtMs: undefined,
      run: () => Promise.resolve(),
    },
    writes: [],
    onWrite: () => {},
    objects,
    put,
    catchUp: () => {
      const gone = [...cached.values()].filter(({ metadata }) => !objects.has(metadata.name));
      cached.clear();
      for (const [name, object] of objects) cached.set(name, object);
      for (const object of gone) for (const handler of handlers) handler({ type: 'deleted', object });
      for (const object of objects.values()) for (const handler of handlers) handler({ type: 'added', object });
    },
  };
  for (const object of initial) put(object);
  store.catchUp();
  return store;
};
