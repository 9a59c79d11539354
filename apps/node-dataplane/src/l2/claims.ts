import { createHash } from 'node:crypto';
import {
  GROUP_VERSION,
  L2_ENDPOINT_FINALIZER,
  labels,
  type Network,
  type NetworkEndpoint,
  networkEndpointKind,
  sameJson,
} from '@unbounded/crds';
import { type Cluster, clientOf, ignoreGone, isConflict, isNotFound, nodes } from '@unbounded/kube';
import { type AskedNetwork, type PlannedEndpoint, planEndpoint } from '@unbounded/l2';
import {
  AbandonedError,
  createEndpointEntries,
  type EndpointEntries,
  type Keys,
  TakenError,
} from './endpoint-entries.ts';
import { endpointKeyOf, endpointName } from './names.ts';

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

/** Choices of others that were made at the same moment. */
const ATTEMPTS = 16;

const seedOf = (key: string, attempt: number): Uint8Array =>
  new Uint8Array(createHash('sha256').update(`${key} ${attempt}`).digest());

/** The node as the API server has it now: of a Node that is made anew the endpoints of its predecessor are removed. */
interface Place {
  readonly name: string;
  readonly uid: string | undefined;
}

const objectOf = (wanted: WantedEndpoint, node: Place, planned: PlannedEndpoint): NetworkEndpoint => {
  const { namespace, pod, podUid, asked, network, isTrusted } = wanted;
  return {
    apiVersion: GROUP_VERSION,
    kind: 'NetworkEndpoint',
    metadata: {
      ...{ name: endpointName(pod, asked.interface), namespace },
      labels: { [labels.network]: network.metadata.name },
      finalizers: [L2_ENDPOINT_FINALIZER],
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: pod, uid: podUid }],
    },
    spec: {
      ...{ network: network.metadata.name, node: node.name, pod, interface: asked.interface, ...planned },
      ...(node.uid && { nodeUID: node.uid }),
      ...(asked.segment === undefined ? {} : { segment: asked.segment }),
      ...(isTrusted ? { isTrusted } : {}),
    },
  };
};

const createObjects = (cluster: Cluster, node: string, entries: EndpointEntries) => {
  const client = clientOf(cluster, networkEndpointKind);
  const ownNode = async (signal: AbortSignal): Promise<Place> => {
    const found = await cluster.client(nodes).get(node, { signal });
    return { name: node, uid: found.metadata.uid };
  };
  const remove = async ({ metadata }: NetworkEndpoint, signal?: AbortSignal): Promise<void> => {
    const { name, namespace, uid } = metadata;
    await client.delete(name, { namespace, signal, ...(uid && { uid }) }).catch(ignoreGone);
    const patch = { metadata: { uid, finalizers: null } };
    await client.mergePatch(name, patch, { namespace, signal }).catch((error: unknown) => {
      if (!isNotFound(error) && !isConflict(error)) throw error; // gone, or another of that name
    });
  };
  return {
    remove,
    /** Another one of that name is there. */
    async isReplaced({ metadata }: NetworkEndpoint, signal?: AbortSignal): Promise<boolean> {
      const { name, namespace, uid } = metadata;
      const found = await client.get(name, { namespace, signal }).catch(ignoreGone);
      return uid !== undefined && found !== undefined && found.metadata.uid !== uid;
    },
    /** @throws Error: of another node */
    async find({ namespace, pod, asked }: WantedEndpoint, signal: AbortSignal): Promise<NetworkEndpoint | undefined> {
      const name = endpointName(pod, asked.interface);
      const found = await client.get(name, { namespace, signal }).catch(ignoreGone);
      if (!found || found.spec.node === node) return found;
      throw new Error(
        `NetworkEndpoint ${namespace}/${name} is on node ${found.spec.node} still: it goes with its pod there, or with that Node`,
      );
    },
    /** A spec does not change: an endpoint of before that says something else goes. */
    async ensure(
      wanted: WantedEndpoint,
      existing: NetworkEndpoint | undefined,
      planned: PlannedEndpoint,
      signal: AbortSignal,
    ): Promise<NetworkEndpoint> {
      const object = objectOf(wanted, await ownNode(signal), planned);
      const isOfPod = existing?.metadata.ownerReferences?.some(({ uid }) => uid === wanted.podUid);
      const stays = existing && isOfPod && existing.metadata.deletionTimestamp === undefined;
      if (stays && sameJson(existing.spec, object.spec)) return existing;
      if (existing) {
        await entries.remove(existing, planned, signal);
        await remove(existing, signal);
      }
      return client.create(object, { namespace: wanted.namespace, signal });
    },
  };
};

export const createClaims = (cluster: Cluster, node: string): Claims => {
  const entries = createEndpointEntries(cluster, node);
  const objects = createObjects(cluster, node, entries);
  return {
    async claim(wanted, signal) {
      const { namespace, pod, asked, network } = wanted;
      const key = endpointKeyOf({ namespace, name: pod }, asked.interface);
      const keys: Keys = { network: network.metadata.name, key, node };
      let existing = await objects.find(wanted, signal);
      const held = existing?.spec.network === keys.network ? existing.spec : undefined;
      const own = [...(held ? [held.mac, ...held.addresses] : [])];
      const sure = new Set([...(asked.mac === undefined ? [] : [asked.mac]), ...(asked.addresses ?? []), ...own]);
      const taken = new Set(wanted.taken).difference(new Set(own));
      for (let attempt = 1; ; attempt++) {
        const planned = planEndpoint(network, { asked, ...(held && { held }), taken, seed: seedOf(key, attempt) });
        try {
          const undo = await entries.claim(planned, sure, keys, signal);
          existing = await objects.ensure(wanted, existing, planned, signal).catch(async (error: unknown) => {
            await undo();
            throw error;
          });
          await entries.state(existing, keys, signal);
          return existing;
        } catch (error) {
          if (error instanceof AbandonedError && attempt < ATTEMPTS) continue;
          if (!(error instanceof TakenError) || attempt === ATTEMPTS) throw error;
          const isAddress = planned.addresses.includes(error.value);
          if ((isAddress ? asked.addresses : asked.mac) !== undefined) throw error; // asked for, and no other will do
          taken.add(error.value);
        } finally {
          entries.ended(keys);
        }
      }
    },
    async release(endpoint, signal) {
      if (await objects.isReplaced(endpoint, signal)) return; // the entries are of that one
      await entries.remove(endpoint, undefined, signal);
      await objects.remove(endpoint, signal);
    },
  };
};
