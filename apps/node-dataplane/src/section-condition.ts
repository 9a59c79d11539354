import type { Problem } from '@unbounded/topology';
import type { NodeCondition } from './section.port.ts';

/** What conditions of sections have in common. */

export const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;

/** By the first problem; undefined: there is none. */
export const problemCondition = (type: string, [problem, ...others]: readonly Problem[]): NodeCondition | undefined =>
  problem && {
    type,
    status: 'False',
    reason: problem.reason,
    message: `${problem.message}${others.length > 0 ? `; and ${others.length} more` : ''}`,
  };
