import type { L2Plan, L2Problem } from '@unbounded/l2';
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
  const type = 'UnboundedL2';
  if (problems.length > 0) return problemCondition(type, problems);
  if (networks.length === 0) return undefined;
  const message = `the node forwards for ${counted(ports.length, 'pod')} in ${counted(networks.length, 'Network')}`;
  return { type, status: 'True', reason: 'InForce', message };
};
