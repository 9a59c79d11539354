import { tailnetAnnotations } from '@unbounded/crds';
import { kubectl } from '../../kubernetes/control-plane.ts';
import type { LabLayout } from '../../layout/layout.ts';
import { createPinnedPods } from '../pinned-pods.ts';

/** Pods of tests beside those of the lab, which are devices. */

export interface JoiningPod {
  readonly name: string;
  readonly node: string;
  readonly start?: 'Immediate' | 'WaitForDevice';
}

export const createPods = (layout: LabLayout, ...pods: readonly JoiningPod[]): Promise<string> =>
  createPinnedPods(
    layout,
    pods.map(({ name, node, start }) => ({
      ...{ name, node, labels: { joins: 'tailnet' }, program: 'probe' },
      annotations: { [tailnetAnnotations.join]: 'true', ...(start && { [tailnetAnnotations.start]: start }) },
    })),
  );

/** They may be there for a moment. */
export const deletePods = async (layout: LabLayout, names: readonly string[]): Promise<void> => {
  if (names.length > 0) await kubectl(layout, ['delete', 'pod', '--wait=false', '--ignore-not-found', ...names]);
};
