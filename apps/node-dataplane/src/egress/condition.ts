import { counted, problemCondition } from '../section-condition.ts';
import type { NodeCondition } from '../section.port.ts';
import type { Enforced } from './enforcement.ts';
import { isIdle } from './enforcement.ts';
import type { EgressPlan, PodClass } from './plan/egress-plan.ts';

export const podsOf = (classes: readonly PodClass[]): number => classes.reduce((sum, { pods }) => sum + pods.length, 0);

/** Of the Node; undefined: it has nothing to do with egress addresses. */
export const egressCondition = ({
  plan,
  isInForce,
  held,
  problems,
}: Pick<Enforced, 'isInForce' | 'held' | 'problems'> & { readonly plan: EgressPlan }): NodeCondition | undefined => {
  const type = 'UnboundedEgress';
  if (problems.length > 0) return problemCondition(type, problems);
  if (isIdle(plan)) return undefined;
  const message = `${counted(podsOf(plan.steered), 'pod')} of this node and ${counted(podsOf(plan.translated), 'pod')} of others leave with egress addresses; the node has ${held.size} egress ${held.size === 1 ? 'address' : 'addresses'}`;
  return { type, status: isInForce ? 'True' : 'False', reason: 'InForce', message };
};
