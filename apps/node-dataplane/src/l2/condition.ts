import { isOfPart, L2_NODE_CONDITION as type, type L2Plan, type L2Problem } from '@unbounded/l2';
import type { Problem } from '@unbounded/topology';
import { counted, problemCondition } from '../section-condition.ts';
import type { NodeCondition } from '../section.port.ts';

/** What the node says about its part of the Networks. */

export const problemOf = ({ kind, name, reason, field, value, remedy }: L2Problem): Problem => ({
  reason,
  message: `${kind} ${name}: ${field} is "${value}": ${remedy}`,
});

/** Of the Node; undefined: it has nothing to do with Networks. */
export const l2Condition = (
  { networks, ports }: Pick<L2Plan, 'networks' | 'ports'>,
  problems: readonly Problem[],
): NodeCondition | undefined => {
  // What concerns the whole node comes first: the controller of Networks reads the reason.
  const ranked = problems.toSorted((a, b) => Number(isOfPart(a.reason)) - Number(isOfPart(b.reason)));
  if (problems.length > 0) return problemCondition(type, ranked);
  if (networks.length === 0) return undefined;
  const message = `the node forwards for ${counted(ports.length, 'pod')} in ${counted(networks.length, 'Network')}`;
  return { type, status: 'True', reason: 'InForce', message };
};
