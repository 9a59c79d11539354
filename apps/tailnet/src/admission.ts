import { createHash } from 'node:crypto';
import { type Mesh, MESH_NAME } from '@unbounded/crds';
import { type Cluster, isNotFound, namespaces, pods } from '@unbounded/kube';
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
  readonly cluster: Cluster;
  readonly nodeName: string;
  /** Undefined: there is none. */
  readonly mesh: (name: string) => Mesh | undefined;
}

export const createAdmission = ({ cluster, nodeName, mesh }: AdmissionParts): Admission => {
  const [podClient, namespaceClient] = [cluster.client(pods), cluster.client(namespaces)];
  return {
    async startOf({ podNamespace: namespace, podName: name, podUid }, signal) {
      const pod = await podClient.get(name, { namespace, signal });
      if (pod.metadata.uid !== podUid)
        throw new Error(`the API server has another pod ${namespace}/${name}: ${pod.metadata.uid}, not ${podUid}`);
      if (pod.spec?.nodeName !== nodeName)
        throw new NoDeviceError(`pod ${namespace}/${name} runs on ${pod.spec?.nodeName ?? 'no node'}, not ${nodeName}`);
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
