import type { Family } from '@unbounded/ip';
import type { Member } from './world.ts';

/** Whom others link with. */

/** A node that others link with: its key and its blocks are known. */
export const isUsable = (member: Member): boolean => member.publicKey !== undefined && member.podCidrs.length > 0;

/** Those who say what a pool can do: all of them only while none is usable. */
export const countedOf = (gateways: readonly Member[]): readonly Member[] => {
  const usable = gateways.filter(isUsable);
  return usable.length > 0 ? usable : gateways;
};

/** What a path is for: pods and nodes by their family, or the locators of stretched L2, which are IPv6 whatever pods are. */
export type Carried = Family | 'locator';

/** An agent of an earlier version drops them at a gateway; a worker forwards nothing for others. */
const forwardsLocators = ({ locator, pool, features }: Member): boolean =>
  locator !== undefined && (pool === undefined || features.includes('locators'));

/** Who has no block of a family does not forward it either. */
export const carries = (member: Member, what: Carried): boolean =>
  isUsable(member) &&
  (what === 'locator' ? forwardsLocators(member) : member.podCidrs.some((block) => block.family === what));
