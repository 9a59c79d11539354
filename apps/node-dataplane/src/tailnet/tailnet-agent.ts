import type { AddRequest, ContainerRequest, TailnetCni, TailnetCniError } from '@unbounded/tailnet-cni';
import type { PodAttachment } from '../attachment/pods.ts';

/** The tailnet agent of this node, and what it is asked about a pod. */
export type TailnetAgent = Pick<TailnetCni, 'add' | 'del' | 'check'>;

/** Answer to CHECK: it knows of no device for the container. */
export const NOT_FOUND = 'pod not found';

/** The pod is to be no device. Not by the class of the error, with which gRPC would come into every agent. */
export const isRefusal = (error: unknown): boolean => {
  const { name, kind } = error as Partial<TailnetCniError>;
  return name === 'TailnetCniError' && kind === 'none';
};

export const containerOf = ({ containerId, netns, interface: ifName }: PodAttachment): ContainerRequest => ({
  ...{ containerId, netns, ifName },
});

export const requestOf = (pod: PodAttachment): AddRequest => ({
  ...containerOf(pod),
  ...{ podName: pod.name, podNamespace: pod.namespace, podUid: pod.uid },
  clusterIp: pod.addresses[0]?.split('/')[0] ?? '',
});
