import type { Problem } from './cluster-view.ts';

/** A problem as it is found, and the words for it. */

export interface Found extends Omit<Problem, 'since'> {
  /** A node says it of itself: it does not take the place of what others observe. */
  readonly isOwn?: true;
}

const LISTED = 5;

/** Of many the first ones, and how many more there are. */
export const listed = (names: readonly string[]): string =>
  names.length <= LISTED ? names.join(', ') : `${names.slice(0, LISTED).join(', ')} and ${names.length - LISTED} more`;

export const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;
