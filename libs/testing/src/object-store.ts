import type { KubeObject, ResourceClient } from '@unbounded/kube';

interface StoreCache<T> {
  readonly name: string;
  get(name: string): T | undefined;
  list(): readonly T[];
  byIndex(index: string, value: string): readonly T[];
  on(handler: (change: never) => void): void;
  readonly isSynced: boolean;
  readonly synced: Promise<void>;
  readonly lostAtMs: number | undefined;
  run(signal: AbortSignal): Promise<void>;
}

/** Objects of one kind in memory: what a controller's pass reads and writes, without an API server. Counts versions. */
export interface ObjectStore<T extends KubeObject> {
  /** An informer that always is up to date, and tells nobody. */
  readonly cache: StoreCache<T>;
  readonly client: ResourceClient<T>;
  get(name: string): T | undefined;
  /** A write by others, which is not counted. */
  put(object: T): void;
  /** Writes by the client. */
  readonly writes: number;
}

type Json = Readonly<Record<string, unknown>>;
const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Lists of conditions are keyed by type, as in a server-side apply; other lists are replaced. */
const mergedList = (name: string, old: unknown, next: readonly Json[]): unknown => {
  if (name !== 'conditions' || !Array.isArray(old)) return next;
  return [...(old as Json[]).filter((entry) => !next.some(({ type }) => type === entry['type'])), ...next];
};

/** RFC 7396, but for conditions. */
const merged = (old: unknown, patch: Json): Json => {
  const result: Record<string, unknown> = isJson(old) ? { ...old } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else if (isJson(value)) result[name] = merged(result[name], value);
    else result[name] = Array.isArray(value) ? mergedList(name, result[name], value as Json[]) : value;
  }
  return result;
};

export const objectStore = <T extends KubeObject>(...initial: readonly T[]): ObjectStore<T> => {
  const objects = new Map(initial.map((object) => [object.metadata.name, object]));
  let writes = 0;
  const write = async (name: string, object: T | undefined): Promise<T> => {
    writes++;
    if (object) objects.set(name, object);
    else objects.delete(name);
    return object as T;
  };
  const patch = (name: string, change: object) =>
    write(name, merged(objects.get(name), change as Json) as unknown as T);
  const client: Partial<ResourceClient<T>> = {
    listAll: async () => [...objects.values()],
    listMetadata: async () => [...objects.values()],
    create: (object) => write(object.metadata.name, object),
    update: (object) => write(object.metadata.name, object),
    mergePatch: (name, change) => patch(name, change),
    apply: (object) => patch(object.metadata.name, object),
    delete: async (name) => void (await write(name, undefined)),
  };
  return {
    cache: {
      name: 'memory',
      get: (name) => objects.get(name),
      list: () => [...objects.values()],
      byIndex: () => [],
      on: () => {},
      isSynced: true,
      synced: Promise.resolve(),
      lostAtMs: undefined,
      run: () => Promise.resolve(),
    },
    client: client as ResourceClient<T>,
    get: (name) => objects.get(name),
    put: (object) => void objects.set(object.metadata.name, object),
    get writes() {
      return writes;
    },
  };
};
