import type { L2Plan, L2Problem } from '@unbounded/l2';
import type { Problem } from '@unbounded/topology';
import type { NodeCondition } from '../section.port.ts';

/** What the node says about its part of the Networks. */

export const problemOf = ({ kind, name, reason, field, value, remedy }: L2Problem): Problem => ({
  reason,
  message: `${kind} ${name}: ${field} is "${value}": ${remedy}`,
});

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;

/** Of the Node; undefined: it has nothing to do with Networks. */
export const l2Condition = (
  { networks, ports }: Pick<L2Plan, 'networks' | 'ports'>,
  problems: readonly Problem[],
): NodeCondition | undefined => {
  const [problem] = problems;
  if (networks.length === 0 && !problem) return undefined;
  const type = 'UnboundedL2';
  if (problem) {
    const message = `${problem.message}${problems.length > 1 ? `; and ${problems.length - 1} more` : ''}`;
    return { type, status: 'False', reason: problem.reason, message };
  }
  const message = `the node forwards for ${counted(ports.length, 'pod')} in ${counted(networks.length, 'Network')}`;
  return { type, status: 'True', reason: 'InForce', message };
};
