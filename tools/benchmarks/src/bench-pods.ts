import { writeFileSync } from 'node:fs';
import { applyManifests, kubectl } from '@unbounded/rig/control-plane';
import type { LabLayout } from '@unbounded/rig/layout';

/** Pods that are objects of the API server and nothing else: an agent asks for them while it attaches them (cni-add.ts). */

const PODS = 65;

export const listOf = (objects: readonly object[]): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });

const podIn =
  (namespace: string) =>
  (_: unknown, index: number): object => ({
    ...{ apiVersion: 'v1', kind: 'Pod' },
    metadata: { name: `bench-${index}`, namespace, labels: { app: 'bench' } },
    // Nobody runs them.
    spec: {
      ...{ schedulerName: 'nobody', automountServiceAccountToken: false },
      containers: [{ name: 'none', image: 'none' }],
    },
  });

/** Makes them in a namespace that is there, and writes the file by which `measureAdd` knows them. */
export const createBenchPods = async (layout: LabLayout, namespace: string, file: string): Promise<void> => {
  await applyManifests(layout, listOf(Array.from({ length: PODS }, podIn(namespace))));
  const { items } = JSON.parse(await kubectl(layout, ['get', 'pods', '-n', namespace, '-o', 'json'])) as {
    items: { metadata: { name: string; uid: string } }[];
  };
  writeFileSync(file, JSON.stringify(items.map(({ metadata: { name, uid } }) => ({ name, uid, namespace }))));
};
