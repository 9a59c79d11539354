import { createHash } from 'node:crypto';
import {
  type FDBEntry,
  fdbEntryKind,
  GROUP_VERSION,
  L2_ENDPOINT_FINALIZER,
  labels,
  type Neighbor,
  neighborKind,
  type Network,
  type NetworkEndpoint,
  networkEndpointKind,
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
import {
  type AskedNetwork,
  endpointKey,
  fdbEntryName,
  neighborName,
  type PlannedEndpoint,
  planEndpoint,
} from '@unbounded/l2';

/**
 * Endpoints of this node's pods and their entries at the API server. Creating an entry claims its key: of two nodes that want one address
 * at the same time one gets it. Who has it stands in the entry's status, which only the node of the endpoint may write.
 */

export interface WantedEndpoint {
  readonly namespace: string;
  readonly pod: string;
  readonly podUid: string;
  readonly asked: AskedNetwork;
  readonly network: Network;
  readonly isTrusted: boolean;
  /** MACs and addresses of others in the network, as far as they are known. */
  readonly taken: Iterable<string>;
}

export interface Claims {
  /** Of a pod that comes back under its name: the endpoint that is there, with what it has. @throws Error with what is in the way */
  claim(wanted: WantedEndpoint, signal: AbortSignal): Promise<NetworkEndpoint>;
  /** Takes the entries, the endpoint and its finalizer away; what is gone already is fine. @throws ApiError, TransportError */
  release(endpoint: NetworkEndpoint, signal?: AbortSignal): Promise<void>;
}

type Entry = FDBEntry | Neighbor;

/** A key is another endpoint's. */
class TakenError extends Error {
  readonly value: string;
  constructor(kind: string, value: string, by: string) {
    super(`${kind} ${value} is taken by ${by}`);
    this.value = value;
  }
}

/** Choices of others that were made at the same moment. */
const ATTEMPTS = 16;

const endpointName = (pod: string, device: string): string => `${pod}.${device}`;

const seedOf = (key: string, attempt: number): Uint8Array =>
  new Uint8Array(createHash('sha256').update(`${key} ${attempt}`).digest());

const optional = async <T>(work: Promise<T>): Promise<T | undefined> => {
  try {
    return await work;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
};

interface Keys {
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
        const found = await optional(client.get(name, { signal }));
        if (found && (isOurs(found, keys) || (!found.status && mayAdopt))) return false;
        throw new TakenError(kind, value, found?.status ? `endpoint ${found.status.endpoint}` : 'somebody else');
      }
    },
    /** @throws TakenError */
    async state(name: string, value: string, status: object, signal: AbortSignal): Promise<void> {
      try {
        await client.mergePatch(name, { status }, { subresource: 'status', signal });
      } catch (error) {
        if (isForbidden(error)) throw new TakenError(kind, value, 'another node'); // it was faster
        throw error;
      }
    },
    async remove(name: string, { key, node }: Pick<Keys, 'key' | 'node'>, signal?: AbortSignal): Promise<void> {
      const found = await optional(client.get(name, { signal }));
      if (!found?.metadata.uid || (found.status && !isOurs(found, { network: '', key, node }))) return;
      await client.delete(name, { uid: found.metadata.uid, signal }).catch(ignoreGone);
    },
  };
};

export const createClaims = (cluster: Cluster, node: string): Claims => {
  const endpoints = clientOf(cluster, networkEndpointKind);
  const stations = createEntries(clientOf(cluster, fdbEntryKind), 'FDBEntry');
  const neighbors = createEntries(clientOf(cluster, neighborKind), 'Neighbor');

  const removeEntries = async (
    { spec, metadata }: NetworkEndpoint,
    kept: PlannedEndpoint | undefined,
    signal?: AbortSignal,
  ) => {
    const keys = { key: endpointKey({ spec, metadata } as NetworkEndpoint), node };
    const { network, mac, addresses } = spec;
    if (mac !== kept?.mac) await stations.remove(fdbEntryName(network, mac), keys, signal);
    for (const ip of addresses)
      if (!kept?.addresses.includes(ip)) await neighbors.remove(neighborName(network, ip), keys, signal);
  };
  const removeObject = async ({ metadata }: NetworkEndpoint, signal?: AbortSignal): Promise<void> => {
    const { name, namespace, uid } = metadata;
    await endpoints.delete(name, { namespace, signal, ...(uid && { uid }) }).catch(ignoreGone);
    await endpoints
      .mergePatch(name, { metadata: { uid, finalizers: null } }, { namespace, signal })
      .catch((error: unknown) => {
        if (!isNotFound(error) && !isConflict(error)) throw error; // gone, or another of that name
      });
  };

  /** Names of entries that this process is about to claim, and for which endpoint. */
  const underWay = new Map<string, string>();

  /**
   * @param sure what the endpoint asks for, or had: nobody else's choice
   * @returns how to take back what is new
   */
  const claimEntries = async (
    { mac, addresses }: PlannedEndpoint,
    sure: ReadonlySet<string>,
    keys: Keys,
    signal: AbortSignal,
  ): Promise<() => Promise<void>> => {
    const { network, key } = keys;
    const source = 'static' as const;
    const made: (() => Promise<void>)[] = [];
    const undo = async (): Promise<void> => {
      for (const take of made) await take().catch(() => undefined); // who wants the key next finds it without a status
    };
    const begin = (name: string, value: string): { name: string; value: string; mayAdopt: boolean } => {
      const other = underWay.get(name);
      if (other === undefined) underWay.set(name, key);
      return { name, value, mayAdopt: sure.has(value) && (other === undefined || other === key) };
    };
    try {
      for (const ip of addresses) {
        const begun = begin(neighborName(network, ip), ip);
        if (await neighbors.create({ ...begun, spec: { network, ip, source } }, keys, signal))
          made.push(() => neighbors.remove(begun.name, { key, node }));
      }
      const begun = begin(fdbEntryName(network, mac), mac);
      if (await stations.create({ ...begun, spec: { network, mac, source } }, keys, signal))
        made.push(() => stations.remove(begun.name, { key, node }));
      return undo;
    } catch (error) {
      await undo();
      throw error;
    }
  };
  const ended = (key: string): void => {
    for (const [name, owner] of underWay) if (owner === key) underWay.delete(name);
  };
  const stateEntries = async (
    { spec }: NetworkEndpoint,
    { network, key }: Keys,
    signal: AbortSignal,
  ): Promise<void> => {
    const binding = { endpoint: key, managingNode: node };
    const { mac, addresses, segment } = spec;
    for (const ip of addresses) await neighbors.state(neighborName(network, ip), ip, { ...binding, mac }, signal);
    await stations.state(fdbEntryName(network, mac), mac, { ...binding, ...(segment && { segment }) }, signal);
  };

  const specOf = (
    { pod, asked, network, isTrusted }: WantedEndpoint,
    planned: PlannedEndpoint,
  ): NetworkEndpoint['spec'] => ({
    ...{ network: network.metadata.name, node, pod, interface: asked.interface, ...planned },
    ...(asked.segment === undefined ? {} : { segment: asked.segment }),
    ...(isTrusted ? { isTrusted } : {}),
  });
  /** A spec does not change: an endpoint of before that says something else goes. */
  const ensureObject = async (
    wanted: WantedEndpoint,
    existing: NetworkEndpoint | undefined,
    planned: PlannedEndpoint,
    signal: AbortSignal,
  ): Promise<NetworkEndpoint> => {
    const { namespace, pod, podUid, asked, network } = wanted;
    const spec = specOf(wanted, planned);
    const isOfPod = existing?.metadata.ownerReferences?.some(({ uid }) => uid === podUid);
    if (existing && isOfPod && JSON.stringify(sorted(existing.spec)) === JSON.stringify(sorted(spec))) return existing;
    if (existing) {
      await removeEntries(existing, planned, signal);
      await removeObject(existing, signal);
    }
    return endpoints.create(
      {
        apiVersion: GROUP_VERSION,
        kind: 'NetworkEndpoint',
        metadata: {
          ...{ name: endpointName(pod, asked.interface), namespace },
          labels: { [labels.network]: network.metadata.name },
          finalizers: [L2_ENDPOINT_FINALIZER],
          ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: pod, uid: podUid }],
        },
        spec,
      },
      { namespace, signal },
    );
  };

  return {
    async claim(wanted, signal) {
      const { namespace, pod, asked, network } = wanted;
      const name = endpointName(pod, asked.interface);
      const keys: Keys = { network: network.metadata.name, key: `${namespace}/${name}`, node };
      let existing = await optional(endpoints.get(name, { namespace, signal }));
      if (existing && existing.spec.node !== node)
        throw new Error(
          `NetworkEndpoint ${keys.key} is on node ${existing.spec.node} still: it goes with its pod there, or with that Node`,
        );
      const held = existing?.spec.network === keys.network ? existing.spec : undefined;
      const taken = new Set(wanted.taken);
      for (const own of held ? [held.mac, ...held.addresses] : []) taken.delete(own);
      for (let attempt = 1; ; attempt++) {
        const planned = planEndpoint(network, { asked, ...(held && { held }), taken, seed: seedOf(keys.key, attempt) });
        try {
          const sure = new Set([asked.mac, ...(asked.addresses ?? []), held?.mac, ...(held?.addresses ?? [])]);
          const undo = await claimEntries(planned, sure as ReadonlySet<string>, keys, signal);
          existing = await ensureObject(wanted, existing, planned, signal).catch(async (error: unknown) => {
            await undo();
            throw error;
          });
          await stateEntries(existing, keys, signal);
          return existing;
        } catch (error) {
          if (!(error instanceof TakenError) || attempt === ATTEMPTS) throw error;
          const isAddress = planned.addresses.includes(error.value);
          if ((isAddress ? asked.addresses : asked.mac) !== undefined) throw error; // asked for, and no other will do
          taken.add(error.value);
        } finally {
          ended(keys.key);
        }
      }
    },
    async release(endpoint, signal) {
      await removeEntries(endpoint, undefined, signal);
      await removeObject(endpoint, signal);
    },
  };
};

const sorted = (value: object): object =>
  Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
