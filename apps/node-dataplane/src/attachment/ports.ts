import type { PodPorts } from './pod-network.ts';
import type { PodAttachment, PodRegistry } from './pods.ts';

/** Ports of pods on the node: of the pod bridge, each under the source guard, or of a section's own network, which is its own to guard. */

const isOnBridge = ({ portOf }: PodAttachment): boolean => portOf === undefined;

/** The pods of the bridge. */
export const bridgePods = (pods: PodRegistry): PodRegistry => ({ ...pods, list: () => pods.list().filter(isOnBridge) });

/** @param guard of the pods of the bridge */
export const podPorts = (guard: PodPorts, pods: PodRegistry): PodPorts => {
  const ownPort = (containerId: string, interfaceName: string): PodAttachment | undefined =>
    pods.list().find((pod) => pod.containerId === containerId && pod.interface === interfaceName && !isOnBridge(pod));
  return {
    async attach(pod) {
      if (isOnBridge(pod)) await guard.attach(pod);
      else pods.add(pod);
    },
    async detach(containerId, interfaceName) {
      if (ownPort(containerId, interfaceName)) pods.remove(containerId, interfaceName);
      else await guard.detach(containerId, interfaceName);
    },
    check: async (containerId, interfaceName) =>
      ownPort(containerId, interfaceName) ? undefined : await guard.check(containerId, interfaceName),
  };
};
