import { podAnnotations } from '@unbounded/crds';
import type { LabLayout } from '../../layout/layout.ts';
import { createPinnedPods } from '../pinned-pods.ts';

/** Pods of tests beside those of the lab: they do nothing but join. */

export interface JoiningPod {
  readonly name: string;
  readonly node: string;
  /** Value of the annotation; absent: the LAN of the lab. */
  readonly networks?: string;
}

export const createPods = (layout: LabLayout, ...pods: readonly JoiningPod[]): Promise<string> =>
  createPinnedPods(
    layout,
    pods.map(({ name, node, networks = 'lan' }) => ({
      ...{ name, node, labels: { joins: 'lan' }, program: 'pause' },
      annotations: { [podAnnotations.networks]: networks },
    })),
  );
