import type { NodePlan } from '../plan.ts';
import { changedWays } from './changed-ways.ts';
import { planTransitions, type TransitionStep } from './transition.ts';

/** A step of one change alone. */
export const planTransition = (before: NodePlan, after: NodePlan, step: TransitionStep): NodePlan =>
  planTransitions(after, [{ ...changedWays(before, after), before, left: [before], step }]);
