import { familyOf } from '../layout/addresses.ts';
import { inNamespace, runAsync } from '../machine/command.ts';
import { kubectl, kubectlCommand } from '../substrate/cluster/control-plane.ts';
import { podCommand, readPods } from '../substrate/bare/pods.ts';
import { type LabLayout, namespaceOf } from '../layout/layout.ts';
import { binary } from '../machine/paths.ts';
import type { Pod } from './test-pod.ts';

/** The test pods, one or two on every node, each of which answers and asks (tools/assets/probe). */

const EXEC_DEADLINE_MS = 90_000;

interface PodItem {
  metadata: { name: string };
  spec: { nodeName: string };
  status: { podIPs?: { ip: string }[] };
}

/** With those of their addresses that the lab's pods are to have: objects of other families may have come since. */
const fabricPods = ({ families }: LabLayout): Pod[] =>
  readPods().flatMap((pod) => {
    const ips = pod.ips.filter((ip) => families.includes(familyOf(ip)));
    return ips[0] === undefined ? [] : [{ ...pod, ips, ip: ips[0] }];
  });

const clusterPods = async (layout: LabLayout): Promise<Pod[]> => {
  const { items } = JSON.parse(await kubectl(layout, ['get', 'pods', '-l', 'app=probe', '-o', 'json'])) as {
    items: PodItem[];
  };
  return items
    .filter((item) => item.status.podIPs?.[0])
    .map((item) => ({
      name: item.metadata.name,
      node: item.spec.nodeName,
      site: layout.nodes.find((node) => node.name === item.spec.nodeName)?.site ?? '?',
      ips: item.status.podIPs!.map(({ ip }) => ip),
      ip: item.status.podIPs![0]!.ip,
    }));
};

/** By node, then by name. */
export const probePods = async (layout: LabLayout): Promise<Pod[]> => {
  const pods = layout.options.fabric ? fabricPods(layout) : await clusterPods(layout);
  return pods.toSorted((a, b) => a.node.localeCompare(b.node) || a.name.localeCompare(b.name));
};

/** Runs the probe inside a pod: by kubectl exec, or in its network namespace where there is no Kubernetes. */
export const inPod = (layout: LabLayout, pod: Pod, args: readonly string[], input?: string): Promise<string> => {
  const program = layout.options.fabric
    ? podCommand(pod, [binary('probe')])
    : [...kubectlCommand(layout), 'exec', ...(input === undefined ? [] : ['-i']), pod.name, '--', '/probe'];
  return runAsync([...program, ...args], {
    timeoutMs: EXEC_DEADLINE_MS,
    ...(input === undefined ? {} : { input }),
  });
};

/** Runs the probe in a node's own network namespace. */
export const inNodeNetwork = (node: string, args: readonly string[], input?: string): Promise<string> =>
  runAsync([...inNamespace(namespaceOf(node)), binary('probe'), ...args], {
    timeoutMs: EXEC_DEADLINE_MS,
    ...(input === undefined ? {} : { input }),
  });
