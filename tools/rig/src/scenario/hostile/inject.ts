import { hexOf } from '@unbounded/testing/packets';
import { runAsync } from '../../machine/command.ts';
import type { Pod } from '../../checks/test-pod.ts';
import { commandInPod } from '../scenario.ts';
import { inNodeNetwork } from '../../checks/probe.ts';

/** Sends packets that no kernel would send by itself. */

const lines = (packets: readonly Uint8Array[]): string => packets.map((packet) => `${hexOf(packet)}\n`).join('');
const repeated = (packet: Uint8Array, count: number): Uint8Array[] => Array.from({ length: count }, () => packet);

export const COUNT = 20;

/** Whole IP packets, one after the other by one process, from the node's own network, as root; each so many times. */
export const allFromNode = (node: string, packets: readonly Uint8Array[], count: number): Promise<string> =>
  inNodeNetwork(node, ['inject', 'packets'], lines(packets.flatMap((packet) => repeated(packet, count))));

/** A whole IP packet, as {@link allFromNode}. */
export const fromNode = (node: string, packet: Uint8Array, count = COUNT): Promise<string> =>
  allFromNode(node, [packet], count);

/** Ethernet frames by a device of the node. */
export const frameFromNode = (node: string, device: string, frame: Uint8Array, count = COUNT): Promise<string> =>
  inNodeNetwork(node, ['inject', 'frames', device], lines(repeated(frame, count)));

/** Whole IP packets, from the pod's network. */
export const fromPod = (pod: Pod, packet: Uint8Array, count = COUNT): Promise<string> =>
  runAsync(commandInPod(pod, ['inject', 'packets']), { input: lines(repeated(packet, count)) });

/** Ethernet frames by a device of the pod's own. */
export const frameFromPod = (pod: Pod, frame: Uint8Array, device = 'eth0', count = COUNT): Promise<string> =>
  runAsync(commandInPod(pod, ['inject', 'frames', device]), { input: lines(repeated(frame, count)) });
