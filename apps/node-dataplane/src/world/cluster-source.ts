import { createInformer, type Informer } from '@unbounded/controller-runtime';
import type { KindTable, ObjectsOf } from '@unbounded/crds';
import { type Cluster, clientOf, type KubeObject, type Node, nodes } from '@unbounded/kube';
import type { Logger } from '@unbounded/telemetry';
import { nodeFactsOf } from './object-files.ts';
import type { InputFilters, Snapshot, WorldSource } from './source.port.ts';

/** Objects from the API server, followed by informers; the Node is only our own. */

/** Informers that count as one source: it changes with each of them, once all have listed their objects. */
interface Follower {
  readonly isSynced: () => boolean;
  readonly version: () => number;
  readonly follow: <T extends KubeObject>(informer: Informer<T>) => Informer<T>;
  /** Returns what takes the handler away again. */
  readonly onChange: (handler: () => void) => () => void;
  readonly stop: () => Promise<void>;
}

const createFollower = (): Follower => {
  const abort = new AbortController();
  /** Each in an object of its own: a section gives the same handler to all of its sources. */
  const handlers = new Set<{ readonly call: () => void }>();
  const running: Promise<void>[] = [];
  const informers: Informer<KubeObject>[] = [];
  let version = 0;
  const isSynced = (): boolean => informers.every((informer) => informer.isSynced);
  const changed = (): void => {
    version++;
    if (isSynced()) for (const { call } of handlers) call();
  };
  return {
    isSynced,
    version: () => version,
    follow: (informer) => {
      informers.push(informer);
      informer.on(changed);
      running.push(informer.run(abort.signal));
      // A kind without objects tells of no change when it is first listed: the end of the listing is one in itself.
      void informer.synced.then(changed);
      return informer;
    },
    onChange(call) {
      const handler = { call };
      handlers.add(handler);
      return () => void handlers.delete(handler);
    },
    stop: async (): Promise<void> => {
      abort.abort();
      await Promise.allSettled(running);
    },
  };
};

/** Our Node, which all sections read. */
export interface NodeSource {
  readonly isSynced: boolean;
  /** As last seen. */
  node(): Node | undefined;
  readonly version: number;
  /** Returns what takes the handler away again. */
  onChange(handler: () => void): () => void;
  stop(): Promise<void>;
}

export const createNodeSource = (cluster: Cluster, nodeName: string, logger: Logger): NodeSource => {
  const { follow, isSynced, version, onChange, stop } = createFollower();
  const filter = { fieldSelector: `metadata.name=${nodeName}` };
  const own = follow(createInformer({ client: cluster.client(nodes), logger, filter }));
  return {
    get isSynced() {
      return isSynced();
    },
    get version() {
      return version();
    },
    node: () => own.get(nodeName),
    onChange,
    stop,
  };
};

export const createClusterSource = <T extends KindTable>(
  cluster: Cluster,
  kinds: T,
  {
    own,
    logger,
    filters = {},
  }: { readonly own: NodeSource; readonly logger: Logger; readonly filters?: InputFilters<T> },
): WorldSource<T> => {
  const { follow, isSynced, version, onChange, stop } = createFollower();
  /** At the Node, which outlives this source. */
  const handlers: (() => void)[] = [];
  const lists = Object.entries(kinds).map(([name, definition]) => {
    const filter = filters[name];
    const informer = createInformer({ client: clientOf(cluster, definition), logger, ...(filter && { filter }) });
    return [name, follow(informer)] as const;
  });
  return {
    snapshot: (): Snapshot<T> | undefined => {
      if (!isSynced() || !own.isSynced) return undefined;
      const node = own.node();
      return {
        objects: Object.fromEntries(lists.map(([name, informer]) => [name, informer.list()])) as ObjectsOf<T>,
        node: node && nodeFactsOf(node),
        version: version() + own.version,
      };
    },
    onChange(handler) {
      onChange(handler);
      handlers.push(own.onChange(handler));
    },
    async stop() {
      for (const takeAway of handlers.splice(0)) takeAway();
      await stop();
    },
  };
};
