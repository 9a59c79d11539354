import type { LabelSelector } from '@unbounded/crds';
import { matchesLabels } from '@unbounded/label-selector';

import type { EgressPod } from '../snapshot.ts';

/** Pods of namespaces by their labels: hundreds of rules do not look at thousands of pods each. */
export interface LabelledPods {
  select(namespace: string, selector: LabelSelector | undefined): readonly EgressPod[];
}

const add = <K>(index: Map<K, EgressPod[]>, key: K, pod: EgressPod): void => {
  const known = index.get(key);
  if (known) known.push(pod);
  else index.set(key, [pod]);
};

export const indexPods = (pods: readonly EgressPod[]): LabelledPods => {
  const ofNamespace = new Map<string, EgressPod[]>();
  const ofLabel = new Map<string, EgressPod[]>();
  const keyOf = (namespace: string, label: string, value: string): string => `${namespace} ${label} ${value}`;
  for (const pod of pods) {
    add(ofNamespace, pod.namespace, pod);
    for (const [label, value] of Object.entries(pod.labels)) add(ofLabel, keyOf(pod.namespace, label, value), pod);
  }
  return {
    select: (namespace, selector) => {
      const lists = Object.entries(selector?.matchLabels ?? {}).map(
        ([label, value]) => ofLabel.get(keyOf(namespace, label, value)) ?? [],
      );
      const fewest = lists.reduce((a, b) => (b.length < a.length ? b : a), ofNamespace.get(namespace) ?? []);
      return fewest.filter(({ labels }) => matchesLabels(selector, labels));
    },
  };
};
