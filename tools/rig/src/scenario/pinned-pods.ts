import { kubectl } from '../kubernetes/control-plane.ts';
import type { LabLayout } from '../layout/layout.ts';
import { images } from '../substrate/cluster/images.ts';

/** Pods of tests beside those of the lab, each on a node of its own choice. */

export interface PinnedPod {
  readonly name: string;
  readonly node: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** `pause` does nothing; `probe` answers and asks. */
  readonly program: 'pause' | 'probe';
}

const ARGS = { pause: [], probe: ['serve'] } as const;

const podObject = ({ name, node, labels, annotations, program }: PinnedPod): object => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, labels, annotations } },
  spec: {
    ...{ nodeName: node, terminationGracePeriodSeconds: 0, tolerations: [{ operator: 'Exists' }] },
    containers: [{ name: program, image: images[program]!.reference, args: ARGS[program], imagePullPolicy: 'Never' }],
  },
});

export const createPinnedPods = (layout: LabLayout, pods: readonly PinnedPod[]): Promise<string> => {
  const list = { apiVersion: 'v1', kind: 'List', items: pods.map(podObject) };
  return kubectl(layout, ['apply', '-f', '-'], JSON.stringify(list));
};
