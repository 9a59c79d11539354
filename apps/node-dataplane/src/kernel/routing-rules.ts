import { NetlinkError, type RouteSocket, type RuleSpec } from '@unbounded/netlink';
import { deleteAll } from './delete-all.ts';

/** Routing rules of a section, told apart from others by their protocol number. */

const textOf = ({ family, priority, table, action = 'lookup', mark, src, iif }: RuleSpec): string =>
  JSON.stringify([family, priority, action === 'lookup' ? table : action, mark?.value, mark?.mask, src, iif]);

/** Whoever made them. */
export const isSameRule = (a: RuleSpec, b: RuleSpec): boolean => textOf(a) === textOf(b);

export const listRules = async (net: RouteSocket, protocol: number): Promise<RuleSpec[]> =>
  (await net.rules.list()).filter((rule) => rule.protocol === protocol);

const without = (rules: readonly RuleSpec[], others: readonly RuleSpec[]): RuleSpec[] => {
  const known = new Set(others.map(textOf));
  return rules.filter((rule) => !known.has(textOf(rule)));
};

/**
 * New before old: of two rules for the same packets the older counts as long as it is there, and there is no moment without one.
 * @param present of the section
 * @returns those that are there already, of somebody else: some kernels do not tell rules apart by their protocol
 * @throws NetlinkError
 */
export const changeRules = async (
  net: RouteSocket,
  present: readonly RuleSpec[],
  wanted: readonly RuleSpec[],
): Promise<readonly RuleSpec[]> => {
  const missing = without(wanted, present);
  const results = await net.rules.apply(missing.map((value) => ({ op: 'create' as const, value })));
  const ofOthers: RuleSpec[] = [];
  for (const [index, result] of results.entries()) {
    if (result.ok) continue;
    if (!(result.error instanceof NetlinkError && result.error.code === 'EEXIST')) throw result.error;
    ofOthers.push(missing[index]!);
  }
  await deleteAll(net.rules, without(present, wanted));
  return ofOthers;
};
