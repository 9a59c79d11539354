import { MAX_EGRESS_POD_ROUTES } from '@unbounded/crds';

import { takesAllOf } from '../rules/precedence.ts';
import type { Rule } from '../rules/rule.ts';

/** What counts of the rules that select a pod. */
export interface EffectiveRules {
  /** The first one that matches a packet serves it. */
  readonly rules: readonly Rule[];
  /** A rule that never serves the pod, and the one that takes its packets. */
  readonly shadowed: readonly { readonly rule: Rule; readonly by: Rule }[];
  /** Rules beyond the number that a pod can have: what no earlier rule matches is dropped. */
  readonly excess: readonly Rule[];
}

const effectiveOf = (selected: readonly Rule[]): EffectiveRules => {
  const rules: Rule[] = [];
  const shadowed: { rule: Rule; by: Rule }[] = [];
  for (const rule of selected) {
    const by = rules.find((earlier) => takesAllOf(earlier, rule));
    if (by) shadowed.push({ rule, by });
    else rules.push(rule);
  }
  if (rules.length <= MAX_EGRESS_POD_ROUTES) return { rules, shadowed, excess: [] };
  const last = MAX_EGRESS_POD_ROUTES - 1; // the last route is the one that drops
  return { rules: rules.slice(0, last), shadowed, excess: rules.slice(last) };
};

/** {@link EffectiveRules} of lists in the order of precedence; pods with the same list share the answer. */
export const createEffectiveRules = (): ((selected: readonly Rule[]) => EffectiveRules) => {
  const known = new Map<string, EffectiveRules>();
  return (selected) => {
    const key = selected.map((rule) => rule.key).join('\n');
    const found = known.get(key) ?? effectiveOf(selected);
    known.set(key, found);
    return found;
  };
};
