import { type Cluster, pods } from '@unbounded/kube';
import type { Annotations } from '../attachment/hook.port.ts';
import type { PodAttachment } from '../attachment/pods.ts';

/**
 * Labels and annotations of a pod of the node, from the API server: a runtime passes no labels, and annotations only at ADD, if at all. A
 * section that asks for them needs a rule of RBAC (`get` of pods), which the chart gives with that section.
 */
interface PodMetadata {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Annotations;
}

export type PodMetadataReader = (pod: PodAttachment) => Promise<PodMetadata>;

/** @param cluster undefined: there is no API server. @throws Error, ApiError, TransportError: what is asked for cannot be had */
export const createPodMetadataReader = (cluster: Cluster | undefined): PodMetadataReader => {
  const client = cluster?.client(pods);
  return async ({ namespace, name, uid }) => {
    if (!client) throw new Error(`labels of pod ${namespace}/${name} cannot be had: the agent has no API server`);
    const { metadata } = await client.get(name, { namespace });
    // A pod of a StatefulSet has the name of the one before it.
    if (uid !== '' && metadata.uid !== uid)
      throw new Error(`pod ${namespace}/${name} of UID ${uid} is not there: the API server has UID ${metadata.uid}`);
    return { labels: metadata.labels ?? {}, annotations: metadata.annotations ?? {} };
  };
};

/** @see createPodMetadataReader */
export const createAnnotationsReader = (cluster: Cluster | undefined) => {
  const metadataOf = createPodMetadataReader(cluster);
  return async (pod: PodAttachment): Promise<Annotations> => (await metadataOf(pod)).annotations;
};
