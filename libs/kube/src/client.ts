import { pathSegment } from './object-name.ts';
import type { KubeObject, Resource } from './objects.ts';
import type { ApiRequest, Transport } from './transport.ts';

export interface ListOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly signal?: AbortSignal;
}

interface Page<T> {
  readonly items: readonly T[];
  /** From where a watch continues without a gap. */
  readonly resourceVersion: string;
  /** Present when there is more. */
  readonly continueToken?: string;
}

interface WatchOptions extends ListOptions {
  readonly resourceVersion: string;
  /** After this time the server ends the watch. */
  readonly timeoutSeconds?: number;
  /** The server watches, whether or not there is anything to report. */
  readonly onOpen?: () => void;
}

export type WatchEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; readonly object: T }
  | {
      readonly type: 'ERROR';
      readonly object: { readonly code?: number; readonly reason?: string; readonly message?: string };
    };

/** One operation of a JSON patch (RFC 6902). */
type JsonPatchOperation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

interface WriteOptions {
  readonly namespace?: string | undefined;
  readonly subresource?: string;
  readonly signal?: AbortSignal | undefined;
}

export interface ResourceClient<T extends KubeObject> {
  readonly resource: Resource<T>;
  /** @throws ApiError (isNotFound) */
  get(name: string, options?: WriteOptions): Promise<T>;
  list(
    options?: ListOptions & {
      readonly limit?: number;
      readonly continueToken?: string | undefined;
      /**
       * At least as new as this. '0': whatever the server has in memory, which spares its store and may be a little old. Not set:
       * the newest.
       */
      readonly resourceVersion?: string | undefined;
    },
  ): Promise<Page<T>>;
  /** Follows all pages. */
  listAll(options?: ListOptions): Promise<readonly T[]>;
  /** Follows all pages, and asks for no more of each object. */
  listMetadata(options?: ListOptions): Promise<readonly Pick<T, 'metadata'>[]>;
  watch(options: WatchOptions): AsyncGenerator<WatchEvent<T>, void, undefined>;
  create(object: T, options?: WriteOptions): Promise<T>;
  /** Replaces. A resourceVersion in the metadata is a precondition. */
  update(object: T, options?: WriteOptions): Promise<T>;
  /** RFC 7396. A `metadata.resourceVersion` in the patch is a precondition. */
  mergePatch(name: string, patch: object, options?: WriteOptions): Promise<T>;
  /** RFC 6902. */
  jsonPatch(name: string, patch: readonly JsonPatchOperation[], options?: WriteOptions): Promise<T>;
  /** Server-side apply: the manager owns exactly the fields that it sends. `force` takes fields over from others. */
  apply(
    object: KubeObject & object,
    options: WriteOptions & { readonly fieldManager: string; readonly force?: boolean },
  ): Promise<T>;
  delete(
    name: string,
    options?: WriteOptions & {
      readonly uid?: string;
      readonly resourceVersion?: string;
      readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
    },
  ): Promise<void>;
}

const PAGE_SIZE = 500;

/** A server that cannot make it of a kind gives whole objects. */
const METADATA_ALONE = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json';

interface ListBody<T> {
  readonly metadata: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: readonly T[];
}

/** Items of a list lack apiVersion and kind; the rest of the program should not have to know. */
const withType = <T extends KubeObject>(resource: Resource<T>, item: T): T => ({
  ...item,
  apiVersion: resource.group === '' ? resource.version : `${resource.group}/${resource.version}`,
  kind: resource.kind,
});

const collectionPath = ({ group, version, plural, isNamespaced }: Resource<KubeObject>, namespace?: string): string => {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  return isNamespaced && namespace !== undefined
    ? `${root}/namespaces/${pathSegment(namespace)}/${plural}`
    : `${root}/${plural}`;
};

const deleteOptions = (options: Parameters<ResourceClient<KubeObject>['delete']>[1] = {}): object => ({
  apiVersion: 'v1',
  kind: 'DeleteOptions',
  ...(options.propagationPolicy ? { propagationPolicy: options.propagationPolicy } : {}),
  ...(options.uid || options.resourceVersion
    ? {
        preconditions: {
          ...(options.uid ? { uid: options.uid } : {}),
          ...(options.resourceVersion ? { resourceVersion: options.resourceVersion } : {}),
        },
      }
    : {}),
});

type Reading<T extends KubeObject> = Pick<ResourceClient<T>, 'get' | 'list' | 'listAll' | 'listMetadata' | 'watch'>;
type Writing<T extends KubeObject> = Omit<ResourceClient<T>, keyof Reading<T> | 'resource'>;

/** The server sends a bookmark about every minute: two of them missing means that the connection is dead. */
const WATCH_IDLE_TIMEOUT_MS = 150_000;

/** Requests about one kind. */
const createCalls = <T extends KubeObject>(transport: Transport, resource: Resource<T>) => ({
  collection: (namespace?: string) => collectionPath(resource, namespace),
  item: (name: string, { namespace, subresource }: WriteOptions) =>
    `${collectionPath(resource, namespace)}/${pathSegment(name)}${subresource ? `/${subresource}` : ''}`,
  send: async <R = T>(request: Omit<ApiRequest, 'signal'>, signal?: AbortSignal): Promise<R> =>
    (await transport.send({ ...request, ...(signal ? { signal } : {}) })) as R,
});
type Calls<T extends KubeObject> = ReturnType<typeof createCalls<T>>;

const createReading = <T extends KubeObject>(
  transport: Transport,
  resource: Resource<T>,
  { collection, item, send }: Calls<T>,
): Reading<T> => {
  const page = async (
    { namespace, limit, continueToken, signal, ...selectors }: Parameters<Reading<T>['list']>[0] = {},
    accept?: string,
  ): Promise<Page<T>> => {
    // Without a match a limit would make it the state of just this version, which the server reads from its store.
    const match = selectors.resourceVersion === undefined ? {} : { resourceVersionMatch: 'NotOlderThan' };
    const query = { ...selectors, ...match, limit, continue: continueToken };
    const request = { method: 'GET', path: collection(namespace), query, ...(accept && { accept }) } as const;
    const body = await send<ListBody<T>>(request, signal);
    return {
      items: (body.items ?? []).map((entry) => withType(resource, entry)),
      resourceVersion: body.metadata.resourceVersion ?? '',
      ...(body.metadata.continue ? { continueToken: body.metadata.continue } : {}),
    };
  };
  const allPages = async (options: ListOptions, accept?: string): Promise<readonly T[]> => {
    const all: T[] = [];
    let continueToken: string | undefined;
    do {
      const next = await page({ ...options, limit: PAGE_SIZE, continueToken }, accept);
      all.push(...next.items);
      continueToken = next.continueToken;
    } while (continueToken !== undefined);
    return all;
  };
  return {
    get: (name, options = {}) => send({ method: 'GET', path: item(name, options) }, options.signal),
    list: (options) => page(options),
    listAll: (options = {}) => allPages(options),
    listMetadata: (options = {}) => allPages(options, METADATA_ALONE),
    watch: ({ namespace, signal, onOpen, ...query }) =>
      transport.stream({
        method: 'GET',
        path: collection(namespace),
        query: { ...query, watch: true, allowWatchBookmarks: true },
        idleTimeoutMs: WATCH_IDLE_TIMEOUT_MS,
        onOpen,
        ...(signal ? { signal } : {}),
      }) as AsyncGenerator<WatchEvent<T>, void, undefined>,
  };
};

const createWriting = <T extends KubeObject>({ collection, item, send }: Calls<T>): Writing<T> => {
  /** An object says itself in which namespace it is. */
  const at = ({ metadata }: KubeObject, options: WriteOptions): WriteOptions => ({
    ...options,
    namespace: options.namespace ?? metadata.namespace,
  });
  const patch = (name: string, body: object, contentType: string, options: WriteOptions): Promise<T> =>
    send({ method: 'PATCH', path: item(name, options), body, contentType }, options.signal);
  return {
    create: (object, options = {}) =>
      send({ method: 'POST', path: collection(at(object, options).namespace), body: object }, options.signal),
    update: (object, options = {}) =>
      send({ method: 'PUT', path: item(object.metadata.name, at(object, options)), body: object }, options.signal),
    mergePatch: (name, body, options = {}) => patch(name, body, 'application/merge-patch+json', options),
    jsonPatch: (name, body, options = {}) => patch(name, body, 'application/json-patch+json', options),
    apply: (object, { fieldManager, force, ...options }) => {
      const path = item(object.metadata.name, at(object, options));
      const contentType = 'application/apply-patch+yaml'; // JSON is YAML
      return send({ method: 'PATCH', path, query: { fieldManager, force }, body: object, contentType }, options.signal);
    },
    delete: async (name, options = {}) => {
      await send({ method: 'DELETE', path: item(name, options), body: deleteOptions(options) }, options.signal);
    },
  };
};

/** Reads and writes objects of one kind. */
export const createClient = <T extends KubeObject>(transport: Transport, resource: Resource<T>): ResourceClient<T> => {
  const calls = createCalls(transport, resource);
  return { resource, ...createReading(transport, resource, calls), ...createWriting(calls) };
};
