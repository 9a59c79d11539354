import { setTimeout as sleep } from 'node:timers/promises';

import {
  ApiError,
  IdleError,
  isExpired,
  type KubeObject,
  type ListOptions,
  type ResourceClient,
  type WatchEvent,
} from '@unbounded/kube';
import type { Logger } from '@unbounded/telemetry';

import { backoffDelay, type BackoffOptions } from './backoff.ts';

type Change<T> =
  | { readonly type: 'added'; readonly object: T }
  | { readonly type: 'updated'; readonly object: T; readonly previous: T }
  | { readonly type: 'deleted'; readonly object: T };

/** A copy of all objects of a kind that follows the API server. */
export interface Informer<T extends KubeObject> {
  readonly name: string;
  /** By `name`, or `namespace/name`. Objects are shared: do not change them. */
  get(key: string): T | undefined;
  list(): readonly T[];
  /** Objects for which the index function gave this value. */
  byIndex(index: string, value: string): readonly T[];
  /** Called for every change from now on, also for what the first listing finds. */
  on(handler: (change: Change<T>) => void): void;
  readonly isSynced: boolean;
  /** Resolves after the first complete listing. */
  readonly synced: Promise<void>;
  /** Since when the API server cannot be read, elapsed ms (performance.now); undefined: it is followed, as far as is known. */
  readonly lostAtMs: number | undefined;
  /** Follows until the signal aborts. Broken connections, restarts and expired versions are survived. */
  run(signal: AbortSignal): Promise<void>;
}

export interface InformerOptions<T extends KubeObject> {
  readonly client: ResourceClient<T>;
  readonly logger: Logger;
  readonly filter?: Pick<ListOptions, 'namespace' | 'labelSelector' | 'fieldSelector'>;
  readonly indexers?: Readonly<Record<string, (object: T) => readonly string[]>>;
  readonly pageSize?: number;
  /** What of an object is kept: parts that nobody reads cost memory. `managedFields` always go. */
  readonly trim?: (object: T) => T;
  /** After refusals by the server (429, 5xx). */
  readonly backoff?: BackoffOptions;
  /** While the server cannot be reached, or broke off: it costs it nothing, and changes should not be heard late. */
  readonly reconnect?: BackoffOptions;
  /** A version that has expired, often for every client at once: the new listing is spread over this time, milliseconds. */
  readonly relistSpreadMs?: number;
}

const DEFAULT_BACKOFF: BackoffOptions = { baseMs: 200, maxMs: 15_000 };
const DEFAULT_RECONNECT: BackoffOptions = { baseMs: 200, maxMs: 2000 };
const DEFAULT_RELIST_SPREAD_MS = 3000;
/** From the server's memory: thousands of clients that start together cost its store nothing. */
const ANY_VERSION = '0';
/** The server ends a watch after this time; spread, so that not all watches of a cluster are renewed together. */
const WATCH_SECONDS = { min: 300, max: 600 };
/** A watch that ends sooner than this counts as a failure: else a broken proxy makes us spin. */
const SHORTEST_WATCH_MS = 1000;

const keyOf = ({ metadata }: KubeObject): string =>
  metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`;

type Indexers<T> = NonNullable<InformerOptions<T & KubeObject>['indexers']>;

/** The objects with their indexes, and who wants to know of changes. */
class Store<T extends KubeObject> {
  readonly #objects = new Map<string, T>();
  readonly #indexers: Indexers<T>;
  readonly #indexes = new Map<string, Map<string, Map<string, T>>>();
  readonly #handlers: ((change: Change<T>) => void)[] = [];

  constructor(indexers: Indexers<T>) {
    this.#indexers = indexers;
    for (const name of Object.keys(indexers)) this.#indexes.set(name, new Map());
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  list(): readonly T[] {
    return [...this.#objects.values()];
  }

  byIndex(index: string, value: string): readonly T[] {
    const values = this.#indexes.get(index);
    if (!values) throw new Error(`no index "${index}": there are ${[...this.#indexes.keys()].join(', ') || 'none'}`);
    return [...(values.get(value)?.values() ?? [])];
  }

  on(handler: (change: Change<T>) => void): void {
    this.#handlers.push(handler);
  }

  put(object: T): void {
    const key = keyOf(object);
    const previous = this.#objects.get(key);
    if (previous?.metadata.resourceVersion === object.metadata.resourceVersion && previous) return;
    if (previous) this.#unindex(key, previous);
    this.#objects.set(key, object);
    this.#index(key, object);
    this.#tell(previous ? { type: 'updated', object, previous } : { type: 'added', object });
  }

  remove(key: string, last?: T): void {
    const previous = this.#objects.get(key);
    if (!previous) return;
    this.#unindex(key, previous);
    this.#objects.delete(key);
    this.#tell({ type: 'deleted', object: last ?? previous });
  }

  /** What the listing does not have is gone, whether or not its deletion was seen. */
  replaceAll(objects: readonly T[]): void {
    const listed = new Set(objects.map(keyOf));
    for (const key of this.#objects.keys()) if (!listed.has(key)) this.remove(key);
    for (const object of objects) this.put(object);
  }

  #index(key: string, object: T): void {
    for (const [name, indexer] of Object.entries(this.#indexers)) {
      const values = this.#indexes.get(name)!;
      for (const value of indexer(object)) {
        const entries = values.get(value) ?? new Map<string, T>();
        values.set(value, entries.set(key, object));
      }
    }
  }

  #unindex(key: string, object: T): void {
    for (const [name, indexer] of Object.entries(this.#indexers)) {
      const values = this.#indexes.get(name)!;
      for (const value of indexer(object)) {
        values.get(value)?.delete(key);
        if (values.get(value)?.size === 0) values.delete(value);
      }
    }
  }

  #tell(change: Change<T>): void {
    for (const handler of this.#handlers) handler(change);
  }
}

const watchSeconds = (): number =>
  Math.round(WATCH_SECONDS.min + Math.random() * (WATCH_SECONDS.max - WATCH_SECONDS.min));

/** Half of an object may be the book-keeping of server-side apply, which no reader of a cache needs. */
const withoutManagedFields = <T extends KubeObject>(object: T): T => {
  const { managedFields: _, ...metadata } = object.metadata as T['metadata'] & { readonly managedFields?: unknown };
  return { ...object, metadata };
};

const listEverything = async <T extends KubeObject>(
  { client, filter, pageSize = 500, trim = (object) => object }: InformerOptions<T>,
  atLeast: string | undefined,
  signal: AbortSignal,
) => {
  const items: T[] = [];
  let continueToken: string | undefined;
  for (;;) {
    // A token has its version in it, and the server refuses both.
    const resourceVersion = continueToken === undefined ? atLeast : undefined;
    const page = await client.list({ ...filter, limit: pageSize, continueToken, resourceVersion, signal });
    for (const item of page.items) items.push(trim(withoutManagedFields(item)));
    continueToken = page.continueToken;
    // All pages show the state of the first page's version; the last one says from where a watch goes on.
    if (continueToken === undefined) return { items, resourceVersion: page.resourceVersion };
  }
};

/** Applies the events of one watch; the version it got to. */
const follow = async <T extends KubeObject>(
  options: InformerOptions<T>,
  store: Store<T>,
  { resourceVersion, signal, onOpen }: { resourceVersion: string; signal: AbortSignal; onOpen: () => void },
): Promise<{ readonly resourceVersion: string; readonly error?: unknown }> => {
  const { trim = (object) => object } = options;
  let at = resourceVersion;
  const watch = { ...options.filter, resourceVersion: at, timeoutSeconds: watchSeconds(), signal, onOpen };
  try {
    for await (const event of options.client.watch(watch) as AsyncGenerator<WatchEvent<T>>) {
      if (event.type === 'ERROR')
        throw new ApiError(`watch ${options.client.resource.plural}`, event.object.code ?? 0, event.object);
      at = event.object.metadata.resourceVersion ?? at;
      if (event.type === 'DELETED') store.remove(keyOf(event.object), event.object);
      else if (event.type !== 'BOOKMARK') store.put(trim(withoutManagedFields(event.object)));
    }
    return { resourceVersion: at };
  } catch (error) {
    // As if the server had ended the watch: a new one shows whether it is still there.
    return error instanceof IdleError ? { resourceVersion: at } : { resourceVersion: at, error };
  }
};

/** Lists into the store. A listing is never older than what is known. */
const createListing = <T extends KubeObject>(options: InformerOptions<T>, store: Store<T>) => {
  /** Undefined after that version has expired: then the newest is asked for. */
  let atLeast: string | undefined = ANY_VERSION;
  return {
    async list(signal: AbortSignal): Promise<string> {
      const { items, resourceVersion } = await listEverything(options, atLeast, signal).catch((error: unknown) => {
        // 504 "too large resource version": the server's memory lags, or its store was restored from a backup.
        if (isExpired(error) || (error instanceof ApiError && error.status === 504)) atLeast = undefined;
        throw error;
      });
      atLeast = resourceVersion;
      store.replaceAll(items);
      return resourceVersion;
    },
    /** A watch got to this version, or its version has expired. */
    known(resourceVersion: string | undefined): void {
      atLeast = resourceVersion;
    },
  };
};

/** Says what went wrong, and how long to wait until it is tried again. */
const afterFailure = <T extends KubeObject>(
  { client, logger, backoff = DEFAULT_BACKOFF, reconnect = DEFAULT_RECONNECT, ...rest }: InformerOptions<T>,
  { error, failures, isRoutine }: { readonly error: unknown; readonly failures: number; readonly isRoutine: boolean },
): number => {
  const resource = client.resource.plural;
  if (isRoutine) {
    logger.debug({ resource }, 'relisting: the watched resource version has expired');
    return (rest.relistSpreadMs ?? DEFAULT_RELIST_SPREAD_MS) * Math.random();
  }
  const delayMs = backoffDelay(failures, error instanceof ApiError ? backoff : reconnect);
  logger.warn({ resource, err: error, failures, delayMs: Math.round(delayMs) }, 'watch interrupted');
  return delayMs;
};

export const createInformer = <T extends KubeObject>(options: InformerOptions<T>): Informer<T> => {
  const { client, logger } = options;
  const store = new Store<T>(options.indexers ?? {});
  const name = client.resource.plural;
  const first = Promise.withResolvers<void>();
  let isSynced = false;
  let lostAtMs: number | undefined;
  const onOpen = (): void => void (lostAtMs = undefined);

  const listing = createListing(options, store);
  const relist = async (signal: AbortSignal): Promise<string> => {
    const resourceVersion = await listing.list(signal);
    if (!isSynced) logger.debug({ resource: name, objects: store.list().length }, 'listed');
    isSynced = true;
    lostAtMs = undefined;
    first.resolve();
    return resourceVersion;
  };

  /** One listing, if needed, and one watch. The version to go on from; undefined: list again. */
  const turn = async (
    version: string | undefined,
    signal: AbortSignal,
  ): Promise<{ version: string | undefined; error?: unknown }> => {
    let from = version;
    try {
      from ??= await relist(signal);
    } catch (error) {
      return { version: undefined, error };
    }
    const startedMs = performance.now();
    const { resourceVersion, error } = await follow(options, store, { resourceVersion: from, signal, onOpen });
    listing.known(isExpired(error) ? undefined : resourceVersion);
    // After a refusal only a listing is sure to work; a broken connection goes on where it was.
    if (error instanceof ApiError) return { version: undefined, error };
    if (error !== undefined) return { version: resourceVersion, error };
    const isTooShort = performance.now() - startedMs < SHORTEST_WATCH_MS && resourceVersion === from;
    return { version: resourceVersion, ...(isTooShort ? { error: new Error('the watch ended at once') } : {}) };
  };

  const run = async (signal: AbortSignal): Promise<void> => {
    let version: string | undefined;
    let failures = 0;
    while (!signal.aborted) {
      const { version: next, error } = await turn(version, signal);
      if (signal.aborted) return;
      const hasProgress = next !== undefined && next !== version;
      version = next;
      failures = error === undefined ? 0 : hasProgress ? 1 : failures + 1;
      if (error === undefined) continue;
      const isRoutine = isExpired(error) && failures === 1; // the server forgets old versions: a listing catches up
      if (!isRoutine) lostAtMs ??= performance.now();
      const delayMs = afterFailure(options, { error, failures, isRoutine });
      await sleep(delayMs, undefined, { signal }).catch(() => undefined);
    }
  };

  return {
    name,
    get: (key) => store.get(key),
    list: () => store.list(),
    byIndex: (index, value) => store.byIndex(index, value),
    on: (handler) => store.on(handler),
    get isSynced() {
      return isSynced;
    },
    synced: first.promise,
    get lostAtMs() {
      return lostAtMs;
    },
    run,
  };
};
