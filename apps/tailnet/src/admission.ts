import { createHash } from 'node:crypto';
import { type Mesh, MESH_NAME } from '@unbounded/crds';
import { type Cluster, isNotFound, namespaces, type Pod, pods } from '@unbounded/kube';
import { planDevice, RefusedAnnotationError, type StartPolicy } from '@unbounded/tailnet';
import type { AddRequest } from '@unbounded/tailnet-cni';
import type { KeptPod } from './device.plan.ts';

/** Whether a pod is to be a device, by what the API server says of it. What the request says decides nothing. */

/** It is to be none, in words. */
export class NoDeviceError extends Error {
  override readonly name = 'NoDeviceError';
}

export interface Admission {
  /** @throws NoDeviceError; Error: the API server does not answer, or does not have the pod (yet) */
  startOf(request: AddRequest, signal: AbortSignal): Promise<StartPolicy>;
  /** @throws Error: the API server does not answer */
  isGone(pod: KeptPod, signal: AbortSignal): Promise<boolean>;
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

export interface AdmissionParts {
  readonly cluster: Pick<Cluster, 'client'>;
  readonly nodeName: string;
  /** Undefined: there is none. */
  readonly mesh: (name: string) => Mesh | undefined;
  /** What is not there of Meshes is not there. */
  readonly isMeshKnown: () => boolean;
}

/** Of a static pod there is a copy at the API server, which names the UID that the kubelet has given to the pod. */
const STATIC_POD_UID = 'kubernetes.io/config.mirror';

/** @throws NoDeviceError; Error: it is another pod, or is not known yet */
const checkIdentity = ({ metadata, spec }: Pod, podUid: string, nodeName: string): void => {
  const name = `${metadata.namespace}/${metadata.name}`;
  if (metadata.annotations?.[STATIC_POD_UID] === podUid)
    throw new NoDeviceError(`pod ${name} is a static pod, which cannot be a device`);
  if (metadata.uid !== podUid)
    throw new Error(`the API server has another pod ${name}: ${metadata.uid}, not ${podUid}`);
  if (spec?.nodeName !== nodeName)
    throw new NoDeviceError(`pod ${name} runs on ${spec?.nodeName ?? 'no node'}, not ${nodeName}`);
};

export const createAdmission = ({ cluster, nodeName, mesh, isMeshKnown }: AdmissionParts): Admission => {
  const [podClient, namespaceClient] = [cluster.client(pods), cluster.client(namespaces)];
  return {
    async startOf({ podNamespace: namespace, podName: name, podUid }, signal) {
      // That a pod is to be none follows from a Mesh alone that was read.
      if (!isMeshKnown())
        throw new Error(`the Mesh is not known yet: whether pod ${namespace}/${name} is a device follows`);
      const pod = await podClient.get(name, { namespace, signal });
      checkIdentity(pod, podUid, nodeName);
      const { metadata } = await namespaceClient.get(namespace, { signal });
      const joining = {
        ...{ namespace, name, namespaceLabels: metadata.labels ?? {} },
        annotations: pod.metadata.annotations ?? {},
      };
      try {
        const wanted = planDevice(mesh(MESH_NAME)?.spec.tailnet, joining, sha256);
        if (wanted) return wanted.start;
      } catch (error) {
        if (error instanceof RefusedAnnotationError) throw new NoDeviceError(error.message);
        throw error;
      }
      throw new NoDeviceError(`pod ${namespace}/${name} does not join the tailnet`);
    },
    async isGone({ namespace, podName, podUID }, signal) {
      try {
        return (await podClient.get(podName, { namespace, signal })).metadata.uid !== podUID;
      } catch (error) {
        if (isNotFound(error)) return true;
        throw error;
      }
    },
  };
};
