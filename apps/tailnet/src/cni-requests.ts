import { deviceUnit } from '@unbounded/keeper-protocol';
import type { AddRequest, AddResponse, CheckResponse, ContainerRequest } from '@unbounded/tailnet-cni';
import type { Admission } from './admission.ts';
import type { PodDevices } from './pod-devices.ts';

/** What is asked of the agent for a container: its ADD, DEL and CHECK. */

/** A field of the request is of no use, in words. */
export class InvalidRequestError extends Error {
  override readonly name = 'InvalidRequestError';
}

export interface CniRequests {
  /** @throws InvalidRequestError, NoDeviceError; Error: not now, in words */
  add(request: AddRequest, signal: AbortSignal): Promise<AddResponse>;
  del(request: ContainerRequest): void;
  check(request: ContainerRequest): CheckResponse;
}

/** For the API server and the keeper; and for a device that is waited for. The container runtime gives up after two minutes. */
const WITHIN_MS = { Immediate: 20_000, WaitForDevice: 90_000 } as const;
const NAMES = {
  podNamespace: 'K8S_POD_NAMESPACE',
  podName: 'K8S_POD_NAME',
  podUid: 'K8S_POD_UID',
  containerId: 'CNI_CONTAINERID',
} as const;

const checkRequest = (request: AddRequest): void => {
  for (const [field, variable] of Object.entries(NAMES))
    if (request[field as keyof typeof NAMES] === '')
      throw new InvalidRequestError(`${field}: must not be empty (${variable} of the container runtime)`);
  try {
    const network = { addresses: [], rules: [], routes: [] };
    deviceUnit.format({ podUID: request.podUid, netns: request.netns, network });
  } catch (error) {
    throw new InvalidRequestError((error as Error).message);
  }
};

const firstOf = (addresses: readonly string[], family: 4 | 6): string =>
  addresses.find((address) => address.includes(':') === (family === 6)) ?? '';

export const createCniRequests = (devices: PodDevices, admission: Admission): CniRequests => {
  /** A pod that is a device stays one, also while the API server is away. */
  const startOf = async (request: AddRequest, signal: AbortSignal) => {
    const known = devices.startOf(request.podUid);
    try {
      return await admission.startOf(request, signal);
    } catch (error) {
      if (known === undefined) throw error;
      return known;
    }
  };
  return {
    async add(request, signal) {
      checkRequest(request);
      const { podUid: podUID, podNamespace: namespace, podName, containerId: id, netns } = request;
      const asked = AbortSignal.any([signal, AbortSignal.timeout(WITHIN_MS.Immediate)]);
      const start = await startOf(request, asked);
      const ending = AbortSignal.any([signal, AbortSignal.timeout(WITHIN_MS[start])]);
      const added = { podUID, namespace, podName, container: { id, netns } };
      const { pod, hostName } = await devices.add(added, start, ending);
      return {
        ...{ tailscaleIpv4: firstOf(pod.addresses, 4), tailscaleIpv6: firstOf(pod.addresses, 6) },
        tailscaleHostname: hostName,
      };
    },
    del: ({ containerId }) => devices.release(containerId),
    check({ containerId }) {
      const device = devices.byContainer(containerId);
      if (!device) return { healthy: false, message: 'pod not found' };
      if (device.isUp) return { healthy: true, message: 'healthy' };
      // Before it has logged in for the first time, a pod that starts at once is as it should be.
      const isWaited = device.pod.start === 'WaitForDevice' || device.pod.addresses.length > 0 || !device.hasNetwork;
      return isWaited ? { healthy: false, message: device.problem } : { healthy: true, message: device.problem };
    },
  };
};
