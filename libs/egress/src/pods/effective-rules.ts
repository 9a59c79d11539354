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

/** Rules of a pod that are looked at, in the order of precedence: what more of them are about is dropped. */
export const MOST_SELECTING = 1024;

const effectiveOf = (selected: readonly Rule[]): EffectiveRules => {
  const rules: Rule[] = [];
  const shadowed: { rule: Rule; by: Rule }[] = [];
  let looked = 0;
  for (const rule of selected.slice(0, MOST_SELECTING)) {
    if (rules.length > MAX_EGRESS_POD_ROUTES) break;
    looked++;
    const by = rules.find((earlier) => takesAllOf(earlier, rule));
    if (by) shadowed.push({ rule, by });
    else rules.push(rule);
  }
  const rest = selected.slice(looked);
  if (rest.length === 0 && rules.length <= MAX_EGRESS_POD_ROUTES) return { rules, shadowed, excess: [] };
  const last = MAX_EGRESS_POD_ROUTES - 1; // the last route is the one that drops
  return { rules: rules.slice(0, last), shadowed, excess: [...rules.slice(last), ...rest] };
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
