import type { Family } from '@unbounded/ip';
import type { Member } from './world.ts';

/** Whom others link with. */

/** A node that others link with: its key and its blocks are known. */
export const isUsable = (member: Member): boolean => member.publicKey !== undefined && member.podCidrs.length > 0;

/** Who has no block of a family does not forward it either. */
export const carries = (member: Member, family: Family): boolean =>
  isUsable(member) && member.podCidrs.some((block) => block.family === family);
