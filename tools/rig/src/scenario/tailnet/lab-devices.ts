import type { TailnetDevice } from '@unbounded/crds';
import type { Pod } from '../../checks/test-pod.ts';
import { askControl } from '../../features/tailnet/control-server.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import type { LabLayout } from '../../layout/layout.ts';
import { onNode, tryOnNode } from '../../node/node.ts';

/** Devices of the lab's pods, as the API server, the control server and the nodes have them. */

const PODS_DIR = '/var/lib/tailscale-cni/pods';

export const recordsOf = async (layout: LabLayout): Promise<readonly TailnetDevice[]> =>
  (JSON.parse(await kubectl(layout, ['get', 'tailnetdevices', '-A', '-o', 'json'])) as { items: TailnetDevice[] })
    .items;

export const recordOf = async (layout: LabLayout, { name }: Pick<Pod, 'name'>): Promise<TailnetDevice | undefined> =>
  (await recordsOf(layout)).find(({ spec }) => spec.pod === name);

export const addressOf = async (layout: LabLayout, pod: Pick<Pod, 'name'>): Promise<string> =>
  (await recordOf(layout, pod))!.status!.addresses![0]!;

/** Host names, the laptop's too. */
export const namesAtServer = (layout: LabLayout): string[] =>
  (JSON.parse(askControl(layout, '/debug/nodes')) as { name: string }[]).map(({ name }) => name.split('.')[0]!).sort();

/** In the node's numbers. */
export const processOf = async (layout: LabLayout, pod: Pod): Promise<number | undefined> => {
  const { podUID } = (await recordOf(layout, pod))!.spec;
  const pids = tryOnNode(pod.node, 'pgrep', '-f', `tailnet-device -dir ${PODS_DIR}/${podUID} `) ?? '';
  return Number(pids.split('\n')[0]) || undefined;
};

/** UIDs of pods of which there are processes or files on a node, and of those that its keeper knows. */
export const leftOnNode = (node: string): string[] => {
  const printed = onNode(
    node,
    ...[
      'sh',
      '-c',
      `ls ${PODS_DIR} /run/unbounded/tailnet/units /run/unbounded/tailnet/pids; pgrep -af tailnet-device`,
    ],
  );
  return [...new Set(printed.match(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g))].sort();
};
