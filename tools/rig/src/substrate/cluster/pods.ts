import type { Pod } from '../../checks/test-pod.ts';
import { kubectl, kubectlCommand } from '../../kubernetes/control-plane.ts';
import type { LabLayout } from '../../layout/layout.ts';

/** Test pods of a cluster: those of a DaemonSet, entered by kubectl exec. */

interface PodItem {
  metadata: { name: string };
  spec: { nodeName: string };
  status: { podIPs?: { ip: string }[] };
}

export const podsOf = async (layout: LabLayout): Promise<Pod[]> => {
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

export const probeCommand = (layout: LabLayout, pod: Pod, hasInput: boolean): string[] => [
  ...kubectlCommand(layout),
  'exec',
  ...(hasInput ? ['-i'] : []),
  pod.name,
  '--',
  '/probe',
];
