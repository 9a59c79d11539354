import { runProbe } from '../checks/probe.ts';
import type { Pod } from '../checks/test-pod.ts';
import type { LabLayout } from '../layout/layout.ts';
import { substrateOf } from './substrates.ts';

/** The test pods, one or two on every node, each of which answers and asks. */

/** By node, then by name. */
export const probePods = async (layout: LabLayout): Promise<Pod[]> =>
  (await substrateOf(layout).pods.list(layout)).toSorted(
    (a, b) => a.node.localeCompare(b.node) || a.name.localeCompare(b.name),
  );

/** Runs the probe inside a pod. */
export const inPod = (layout: LabLayout, pod: Pod, args: readonly string[], input?: string): Promise<string> =>
  runProbe(substrateOf(layout).pods.probeCommand(layout, pod, input !== undefined), args, input);
