import { formatAddress } from '@unbounded/ip';

import type { EgressNode, EgressPod } from '../snapshot.ts';
import { settledBlocks } from './node-blocks.ts';

export interface ConfinedPods {
  readonly pods: readonly EgressPod[];
  /** Addresses that were left out, by the UID of the pod. */
  readonly foreign: ReadonlyMap<string, readonly string[]>;
}

/**
 * Pods with those of their addresses that are inside of the blocks of their node. A kubelet writes what it likes into the status of its
 * pods: an address of another node's pod would draw that pod's answers to it.
 */
export const confinePods = (pods: readonly EgressPod[], nodes: readonly EgressNode[]): ConfinedPods => {
  const blocks = settledBlocks(nodes);
  const foreign = new Map<string, readonly string[]>();
  const confined = pods.map((pod) => {
    if (pod.isHostNetwork) return pod;
    const inside = pod.addresses.filter((address) => blocks.get(pod.node)?.has(address));
    if (inside.length === pod.addresses.length) return pod;
    foreign.set(pod.uid, pod.addresses.filter((address) => !inside.includes(address)).map(formatAddress));
    return { ...pod, addresses: inside };
  });
  return { pods: confined, foreign };
};
