import type { NodeCondition } from '../section.port.ts';
import type { Enforced } from './enforcement.ts';
import { isIdle } from './enforcement.ts';
import type { EgressPlan, PodClass } from './plan/egress-plan.ts';

export const podsOf = (classes: readonly PodClass[]): number => classes.reduce((sum, { pods }) => sum + pods.length, 0);
const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;

/** Of the Node; undefined: it has nothing to do with egress addresses. */
export const egressCondition = ({
  plan,
  isInForce,
  held,
  problems,
}: Pick<Enforced, 'isInForce' | 'held' | 'problems'> & { readonly plan: EgressPlan }): NodeCondition | undefined => {
  if (isIdle(plan) && problems.length === 0) return undefined;
  const [problem] = problems;
  if (problem) {
    const message = `${problem.message}${problems.length > 1 ? `; and ${problems.length - 1} more` : ''}`;
    return { type: 'UnboundedEgress', status: 'False', reason: problem.reason, message };
  }
  const message = `${counted(podsOf(plan.steered), 'pod')} of this node and ${counted(podsOf(plan.translated), 'pod')} of others leave with egress addresses; the node has ${held.size} egress ${held.size === 1 ? 'address' : 'addresses'}`;
  return { type: 'UnboundedEgress', status: isInForce ? 'True' : 'False', reason: 'InForce', message };
};
