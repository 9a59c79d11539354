import { tailnetAnnotations } from '@unbounded/crds';
import { kubectl } from '../../kubernetes/control-plane.ts';
import type { LabLayout } from '../../layout/layout.ts';
import { images } from '../../substrate/cluster/images.ts';

/** Pods of tests beside those of the lab, which are devices. */

export interface JoiningPod {
  readonly name: string;
  readonly node: string;
  readonly start?: 'Immediate' | 'WaitForDevice';
}

const podObject = ({ name, node, start }: JoiningPod): object => ({
  ...{ apiVersion: 'v1', kind: 'Pod' },
  metadata: {
    ...{ name, labels: { joins: 'tailnet' } },
    annotations: { [tailnetAnnotations.join]: 'true', ...(start && { [tailnetAnnotations.start]: start }) },
  },
  spec: {
    ...{ nodeName: node, terminationGracePeriodSeconds: 0, tolerations: [{ operator: 'Exists' }] },
    containers: [{ name: 'probe', image: images['probe']!.reference, args: ['serve'], imagePullPolicy: 'Never' }],
  },
});

export const createPods = (layout: LabLayout, ...pods: readonly JoiningPod[]): Promise<string> => {
  const list = { apiVersion: 'v1', kind: 'List', items: pods.map(podObject) };
  return kubectl(layout, ['apply', '-f', '-'], JSON.stringify(list));
};

/** They may be there for a moment. */
export const deletePods = async (layout: LabLayout, names: readonly string[]): Promise<void> => {
  if (names.length > 0) await kubectl(layout, ['delete', 'pod', '--wait=false', '--ignore-not-found', ...names]);
};
