import type { ClusterStaticEgressIP, StaticEgressIP } from '@unbounded/crds';
import { type Labels, matchesLabels } from '@unbounded/label-selector';

import { selectionOf } from '../rules/parse-rules.ts';

/**
 * Whether a rule selects one pod: what planSelections says of it, in one look at each rule and up to the first that does. An agent asks
 * while a pod waits and all else of it stands still.
 */

interface OnePod {
  readonly labels: Labels;
  readonly namespaceLabels: Labels;
}

/** By labels of pods. @param rules those of the namespace of the pod */
export const selectsByLabels = (
  rules: readonly StaticEgressIP[],
  clusterRules: readonly ClusterStaticEgressIP[],
  { labels, namespaceLabels }: OnePod,
): boolean =>
  [...rules, ...clusterRules].some(({ kind, spec }) =>
    spec.rules.some((rule) => {
      const selection = selectionOf(rule);
      if (selection.by !== 'labels') return false;
      const isInside = kind === 'StaticEgressIP' || matchesLabels(selection.namespaces, namespaceLabels);
      return isInside && matchesLabels(selection.pods, labels);
    }),
  );

/** Services that rules name, each once: they may select the pod. */
export const namedServices = (rules: readonly StaticEgressIP[]): ReadonlySet<string> =>
  new Set(
    rules.flatMap(({ spec }) =>
      spec.rules.flatMap((rule) => {
        const selection = selectionOf(rule);
        return selection.by === 'service' ? [selection.service] : [];
      }),
    ),
  );

/** Whether a Service with this selector selects pods with these labels; without one it selects none. */
export const serviceSelects = (selector: Labels | undefined, labels: Labels): boolean =>
  Object.keys(selector ?? {}).length > 0 && matchesLabels({ matchLabels: selector! }, labels);
