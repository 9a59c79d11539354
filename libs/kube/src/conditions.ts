import type { Condition } from '@unbounded/crds';

export type NewCondition = Omit<Condition, 'lastTransitionTime'>;

const sameExceptTime = (a: NewCondition, b: NewCondition): boolean =>
  a.status === b.status &&
  a.reason === b.reason &&
  a.message === b.message &&
  a.observedGeneration === b.observedGeneration;

/**
 * The list with this condition set. The transition time changes only with the status. When nothing changes the list
 * itself is returned, so that `===` tells whether a write is needed.
 */
export const withCondition = (
  conditions: readonly Condition[] | undefined,
  next: NewCondition,
  now: Date,
): readonly Condition[] => {
  const existing = conditions?.find(({ type }) => type === next.type);
  if (conditions && existing && sameExceptTime(existing, next)) return conditions;
  const time = now.toISOString().replace(/\.\d+Z$/, 'Z'); // metav1.Time has whole seconds
  const lastTransitionTime = existing?.status === next.status ? existing.lastTransitionTime : time;
  const rest = (conditions ?? []).filter(({ type }) => type !== next.type);
  return [...rest, { ...next, lastTransitionTime }].sort((a, b) => (a.type < b.type ? -1 : 1));
};

/** Those of `wanted` that the object's list lacks or has otherwise: empty means that nothing needs to be written. */
export const changedConditions = (
  conditions: readonly Condition[] | undefined,
  wanted: readonly NewCondition[],
): readonly NewCondition[] =>
  wanted.filter((next) => {
    const existing = conditions?.find(({ type }) => type === next.type);
    return !existing || !sameExceptTime(existing, next);
  });
