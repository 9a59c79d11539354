import { podAnnotations } from '@unbounded/crds';
import { kubectl } from '../../kubernetes/control-plane.ts';
import type { LabLayout } from '../../layout/layout.ts';
import { images } from '../../substrate/cluster/images.ts';

/** Pods of tests beside those of the lab: they do nothing but join. */

export interface JoiningPod {
  readonly name: string;
  readonly node: string;
  /** Value of the annotation; absent: the LAN of the lab. */
  readonly networks?: string;
}

const JOINS = { joins: 'lan' } as const;

const podObject = ({ name, node, networks = 'lan' }: JoiningPod): object => ({
  ...{ apiVersion: 'v1', kind: 'Pod' },
  metadata: { name, labels: JOINS, annotations: { [podAnnotations.networks]: networks } },
  spec: {
    ...{ nodeName: node, terminationGracePeriodSeconds: 0, tolerations: [{ operator: 'Exists' }] },
    containers: [{ name: 'pause', image: images['pause']!.reference, imagePullPolicy: 'Never' }],
  },
});

export const createPods = (layout: LabLayout, ...pods: readonly JoiningPod[]): Promise<string> => {
  const list = { apiVersion: 'v1', kind: 'List', items: pods.map(podObject) };
  return kubectl(layout, ['apply', '-f', '-'], JSON.stringify(list));
};
