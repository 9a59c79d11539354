import type { NodePlan } from '../plan.ts';
import { changedPrefixes, planTransitions, type TransitionStep } from './transition.ts';

/** A step of one change alone. */
export const planTransition = (before: NodePlan, after: NodePlan, step: TransitionStep): NodePlan =>
  planTransitions(after, [{ before, prefixes: changedPrefixes(before, after), step }]);
