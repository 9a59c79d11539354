import type { NetworkEndpoint } from '@unbounded/crds';
import { ignoreGone, isObjectName, type KubeObject, type Node, type Pod, type ResourceClient } from '@unbounded/kube';
import { isNodeGone, isPodElsewhere, isPodGone, type Removal } from '@unbounded/l2';

export interface LookupClients {
  readonly nodes: Pick<ResourceClient<Node>, 'get'>;
  readonly pods: Pick<ResourceClient<Pod>, 'get'>;
  readonly endpoints: Pick<ResourceClient<NetworkEndpoint>, 'get'>;
}

/** Agents wrote these names: what no object can be called is gone, and is sent to no API server as a path. */
const readNamed = async <T extends KubeObject>(
  client: Pick<ResourceClient<T>, 'get'>,
  names: { readonly name: string; readonly namespace?: string },
  signal: AbortSignal,
): Promise<T | undefined> => {
  const { name, ...place } = names;
  if (!Object.values(names).every(isObjectName)) return undefined;
  return (await client.get(name, { ...place, signal }).catch(ignoreGone)) ?? undefined;
};

/**
 * Asks the API server whether what a removal is about is gone right now. Caches of several kinds are of different moments: an entry can be
 * there before the endpoint that it is for.
 * @returns whether to remove
 */
export const createLookups = (clients: LookupClients, signal: AbortSignal) => {
  // Many endpoints are of one node.
  const nodes = new Map<string, Promise<Node | undefined>>();
  const nodeOf = (name: string): Promise<Node | undefined> => {
    const known = nodes.get(name) ?? readNamed(clients.nodes, { name }, signal);
    nodes.set(name, known);
    return known;
  };
  return async (removal: Removal): Promise<boolean> => {
    if (removal.reason === 'Abandoned') return true; // a status would be another version, which is not removed
    if (removal.reason === 'NodeGone') {
      const node = await nodeOf(removal.node);
      return removal.endpoint ? isNodeGone(removal.endpoint, node) : node === undefined;
    }
    if (removal.reason !== 'EndpointGone') {
      const { endpoint, reason } = removal;
      const names = { name: endpoint.spec.pod, namespace: endpoint.metadata.namespace ?? '' };
      const pod = await readNamed(clients.pods, names, signal);
      return (
        (reason !== 'PodElsewhere' && isPodGone(endpoint, pod)) ||
        (reason !== 'PodGone' && isPodElsewhere(endpoint, pod))
      );
    }
    const [namespace = '', ...rest] = removal.endpointKey.split('/');
    return (await readNamed(clients.endpoints, { namespace, name: rest.join('/') }, signal)) === undefined;
  };
};
