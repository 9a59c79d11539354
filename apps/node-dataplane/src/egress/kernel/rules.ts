import { EGRESS_ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import type { RouteSocket, RuleSpec } from '@unbounded/netlink';
import { deleteAll } from '../../kernel/delete-all.ts';

/** Rules of egress, told apart from others by their protocol. */

const keyOf = ({ family, priority, table, action = 'lookup', mark, src, iif }: RuleSpec): string =>
  JSON.stringify([family, priority, action === 'lookup' ? table : action, mark?.value, mark?.mask, src, iif]);

export const egressRules = async (net: RouteSocket) =>
  (await net.rules.list()).filter(({ protocol }) => protocol === EGRESS_ROUTE_PROTOCOL);

/** Addresses of pods of this node that rules are about, whoever made them. */
export const ruledAddresses = async (net: RouteSocket): Promise<string[]> =>
  (await egressRules(net)).flatMap(({ src }) => src?.split('/')[0] ?? []);

/** @throws NetlinkError */
const addRules = async (net: RouteSocket, rules: readonly RuleSpec[]): Promise<void> => {
  const added = await net.rules.apply(rules.map((value) => ({ op: 'create' as const, value })));
  for (const result of added) if (!result.ok && result.error.code !== 'EEXIST') throw result.error;
};

const without = <T extends RuleSpec>(rules: readonly T[], others: readonly RuleSpec[]): T[] => {
  const known = new Set(others.map(keyOf));
  return rules.filter((rule) => !known.has(keyOf(rule)));
};

/**
 * New before old: of two rules of one pod the older counts as long as it is there, and there is no moment without one.
 * @param present of egress
 * @throws NetlinkError
 */
export const changeEgressRules = async (
  net: RouteSocket,
  present: readonly RuleSpec[],
  wanted: readonly RuleSpec[],
): Promise<void> => {
  await addRules(net, without(wanted, present));
  await deleteAll(net.rules, without(present, wanted));
};

/** Whatever is there. @throws NetlinkError */
export const ensureEgressRules = async (net: RouteSocket, wanted: readonly RuleSpec[]): Promise<void> =>
  changeEgressRules(net, await egressRules(net), wanted);
