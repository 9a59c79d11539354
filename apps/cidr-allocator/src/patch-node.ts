import { ignoreGone, isConflict, isNotFound, type Node, type ResourceClient } from '@unbounded/kube';

/** Patches under way at the same time: the API server's latency is what limits a large batch. */
export const PARALLEL_PATCHES = 8;
const MAX_CONFLICTS = 5;

export interface NodePatch {
  readonly client: ResourceClient<Node>;
  readonly signal: AbortSignal;
  /** A JSON merge patch (RFC 7396). */
  readonly change: { readonly metadata?: object; readonly spec?: object };
  /** Whether what the patch is about stands as the plan saw it. */
  readonly isAsSeen: (node: Node) => boolean;
}

/** True when the node has the change; false when it is gone or has got another meanwhile. @throws ApiError, TransportError */
export const patchNode = async (first: Node, { client, signal, change, isAsSeen }: NodePatch): Promise<boolean> => {
  let node = first;
  for (let conflicts = 0; ; conflicts++) {
    const { name, uid, resourceVersion } = node.metadata;
    // The version makes sure that the node still is as the plan saw it; the uid, that it is no namesake.
    const patch = { ...change, metadata: { ...change.metadata, uid, resourceVersion } };
    try {
      await client.mergePatch(name, patch, { signal });
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      if (!isConflict(error) || conflicts >= MAX_CONFLICTS) throw error;
    }
    const now = await client.get(name, { signal }).catch(ignoreGone); // a heartbeat was faster, or someone else's write
    if (!now || now.metadata.uid !== first.metadata.uid || !isAsSeen(now)) return false;
    node = now;
  }
};
