import type { NetworkEndpoint } from '@unbounded/crds';
import { ignoreGone, type Node, type Pod, type ResourceClient } from '@unbounded/kube';
import { isNodeGone, isPodGone, type Removal } from '@unbounded/l2';

export interface LookupClients {
  readonly nodes: Pick<ResourceClient<Node>, 'get'>;
  readonly pods: Pick<ResourceClient<Pod>, 'get'>;
  readonly endpoints: Pick<ResourceClient<NetworkEndpoint>, 'get'>;
}

/**
 * Asks the API server whether what a removal is about is gone right now. Caches of several kinds are of different moments: an entry can be
 * there before the endpoint that it is for.
 * @returns whether to remove
 */
export const createLookups = (clients: LookupClients, signal: AbortSignal) => {
  // Many endpoints are of one node.
  const nodes = new Map<string, Promise<Node | undefined>>();
  const nodeOf = (name: string): Promise<Node | undefined> => {
    const known = nodes.get(name) ?? clients.nodes.get(name, { signal }).catch(ignoreGone);
    nodes.set(name, known);
    return known;
  };
  return async (removal: Removal): Promise<boolean> => {
    if (removal.reason === 'Abandoned') return true; // a status would be another version, which is not removed
    if (removal.reason === 'NodeGone') {
      const node = await nodeOf(removal.node);
      return removal.endpoint ? isNodeGone(removal.endpoint, node) : node === undefined;
    }
    if (removal.reason === 'PodGone') {
      const { metadata, spec } = removal.endpoint;
      const place = { namespace: metadata.namespace ?? '', signal };
      return isPodGone(removal.endpoint, await clients.pods.get(spec.pod, place).catch(ignoreGone));
    }
    const [namespace = '', name = ''] = removal.endpointKey.split('/');
    return (await clients.endpoints.get(name, { namespace, signal }).catch(ignoreGone)) === undefined;
  };
};
