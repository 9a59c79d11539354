import type { EgressPod } from '../snapshot.ts';
import type { Rule } from '../rules/rule.ts';
import { createEffectiveRules, type EffectiveRules } from './effective-rules.ts';
import type { PodSelections } from './select.plan.ts';

/** A pod that at least one rule selects. */
export interface SelectedPod {
  readonly pod: EgressPod;
  /** Every rule that selects it, in the order of precedence. */
  readonly selectedBy: readonly Rule[];
  readonly effective: EffectiveRules;
}

/** By UID, in the order of the pods’ UIDs. */
export const planSelectedPods = (
  pods: readonly EgressPod[],
  { rulesOf }: PodSelections,
): ReadonlyMap<string, SelectedPod> => {
  const effectiveOf = createEffectiveRules();
  return new Map(
    pods.flatMap((pod) => {
      const selectedBy = rulesOf.get(pod.uid);
      if (!selectedBy) return [];
      return [[pod.uid, { pod, selectedBy, effective: effectiveOf(selectedBy) }] as const];
    }),
  );
};
