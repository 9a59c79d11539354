import {
  type FDBEntry,
  fdbEntryKind,
  GROUP_VERSION,
  labels,
  type Neighbor,
  neighborKind,
  type NetworkEndpoint,
} from '@unbounded/crds';
import {
  type Cluster,
  clientOf,
  ignoreGone,
  isConflict,
  isForbidden,
  isNotFound,
  type ResourceClient,
} from '@unbounded/kube';
import { endpointKey, fdbEntryName, neighborName, type PlannedEndpoint } from '@unbounded/l2';

/** Entries of this node's endpoints at the API server. Creating one claims its key; of whom its status is, it is. */

type Entry = FDBEntry | Neighbor;

/** A key is another endpoint's. */
export class TakenError extends Error {
  readonly value: string;
  constructor(kind: string, value: string, by: string) {
    super(`${kind} ${value} is taken by ${by}`);
    this.value = value;
  }
}

/** An entry that nobody had bound for long was removed as it was taken over. */
export class AbandonedError extends Error {}

export interface Keys {
  readonly network: string;
  readonly key: string;
  readonly node: string;
}

interface Key<T extends Entry> {
  readonly name: string;
  readonly spec: T['spec'];
  /** In words. */
  readonly value: string;
  readonly mayAdopt: boolean;
}

/** Of one kind of entries. */
const createEntries = <T extends Entry>(client: ResourceClient<T>, kind: T['kind']) => {
  const isOurs = ({ status }: T, { key, node }: Keys): boolean =>
    status?.endpoint === key && status.managingNode === node;
  return {
    /**
     * @param mayAdopt one that has no status is nobody's yet: of whom the status is, it is
     * @returns whether it is new. @throws TakenError
     */
    async create({ name, spec, value, mayAdopt }: Key<T>, keys: Keys, signal: AbortSignal): Promise<boolean> {
      const metadata = { name, labels: { [labels.network]: keys.network } };
      try {
        await client.create({ apiVersion: GROUP_VERSION, kind, metadata, spec } as unknown as T, { signal });
        return true;
      } catch (error) {
        if (!isConflict(error)) throw error;
        const found = await client.get(name, { signal }).catch(ignoreGone);
        if (found && (isOurs(found, keys) || (!found.status && mayAdopt))) return false;
        throw new TakenError(kind, value, found?.status ? `endpoint ${found.status.endpoint}` : 'somebody else');
      }
    },
    /** @throws TakenError, AbandonedError */
    async state(name: string, value: string, status: object, signal: AbortSignal): Promise<void> {
      try {
        await client.mergePatch(name, { status }, { subresource: 'status', signal });
      } catch (error) {
        if (isForbidden(error)) throw new TakenError(kind, value, 'another node'); // it was faster
        if (isNotFound(error)) throw new AbandonedError(`${kind} ${value} is gone`, { cause: error });
        throw error;
      }
    },
    async remove(name: string, keys: Keys, signal?: AbortSignal): Promise<void> {
      const found = await client.get(name, { signal }).catch(ignoreGone);
      if (!found?.metadata.uid || (found.status && !isOurs(found, keys))) return;
      await client.delete(name, { uid: found.metadata.uid, signal }).catch(ignoreGone);
    },
  };
};

/** What stands of an endpoint: an entry for its MAC and for each address. */
export interface EndpointEntries {
  /**
   * @param sure what the endpoint asks for, or had: nobody else's choice
   * @returns how to take back what is new. @throws TakenError
   */
  claim(
    planned: PlannedEndpoint,
    sure: ReadonlySet<string>,
    keys: Keys,
    signal: AbortSignal,
  ): Promise<() => Promise<void>>;
  /** The end of a claim, however it went. */
  ended(keys: Keys): void;
  /** Says whose they are. @throws TakenError: another node was faster; AbandonedError: claim again */
  state(endpoint: NetworkEndpoint, keys: Keys, signal: AbortSignal): Promise<void>;
  /** Of the endpoint, but for those that are kept. */
  remove(endpoint: NetworkEndpoint, kept?: PlannedEndpoint, signal?: AbortSignal): Promise<void>;
}

/** Names of entries that this process is about to claim, and for which endpoint. */
const createUnderWay = () => {
  const owners = new Map<string, string>();
  return {
    /** @returns whether it is nobody else's */
    begin(name: string, key: string): boolean {
      const owner = owners.get(name);
      if (owner === undefined) owners.set(name, key);
      return owner === undefined || owner === key;
    },
    ended(key: string): void {
      for (const [name, owner] of owners) if (owner === key) owners.delete(name);
    },
  };
};

export const createEndpointEntries = (cluster: Cluster, node: string): EndpointEntries => {
  const stations = createEntries(clientOf(cluster, fdbEntryKind), 'FDBEntry');
  const neighbors = createEntries(clientOf(cluster, neighborKind), 'Neighbor');
  const underWay = createUnderWay();
  return {
    async claim({ mac, addresses }, sure, keys, signal) {
      const { network, key } = keys;
      const source = 'static' as const;
      const made: (() => Promise<void>)[] = [];
      const undo = async (): Promise<void> => {
        for (const take of made) await take().catch(() => undefined); // who wants the key next finds it without a status
      };
      const begin = (name: string, value: string) => {
        const isOwn = underWay.begin(name, key);
        return { name, value, mayAdopt: isOwn && sure.has(value) };
      };
      try {
        for (const ip of addresses) {
          const begun = begin(neighborName(network, ip), ip);
          if (await neighbors.create({ ...begun, spec: { network, ip, source } }, keys, signal))
            made.push(() => neighbors.remove(begun.name, keys));
        }
        const begun = begin(fdbEntryName(network, mac), mac);
        if (await stations.create({ ...begun, spec: { network, mac, source } }, keys, signal))
          made.push(() => stations.remove(begun.name, keys));
        return undo;
      } catch (error) {
        await undo();
        throw error;
      }
    },
    ended: ({ key }) => underWay.ended(key),
    async state({ spec }, { network, key }, signal) {
      const binding = { endpoint: key, managingNode: node };
      const { mac, addresses, segment } = spec;
      for (const ip of addresses) await neighbors.state(neighborName(network, ip), ip, { ...binding, mac }, signal);
      await stations.state(fdbEntryName(network, mac), mac, { ...binding, ...(segment && { segment }) }, signal);
    },
    async remove(endpoint, kept, signal) {
      const { network, mac, addresses } = endpoint.spec;
      const keys: Keys = { network, key: endpointKey(endpoint), node };
      if (mac !== kept?.mac) await stations.remove(fdbEntryName(network, mac), keys, signal);
      for (const ip of addresses)
        if (!kept?.addresses.includes(ip)) await neighbors.remove(neighborName(network, ip), keys, signal);
    },
  };
};
