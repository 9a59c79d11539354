import type { Expression, PayloadField, RuleSpec } from '@unbounded/nftables';

/** The vocabulary of the guard's rules. */

/** What was not the pod's own. */
export const DROP_REASONS = ['mac', 'ipv4', 'ipv6', 'arp', 'nd', 'router', 'protocol'] as const;
export type DropReason = (typeof DROP_REASONS)[number];

export const rule = (comment: string, ...expressions: Expression[]): RuleSpec => ({ comment, expressions });
export const accept: Expression = { do: 'accept' };
/** Ends the frame: it is counted, and dropped. */
export const drop = (reason: DropReason): Expression => ({ do: 'goto', chain: `drop_${reason}` });

/** The port, with these fields behind it, is or is not an element of the set. */
export const own = (
  set: 'ports' | 'macs' | 'ipv4' | 'ipv6',
  op: '==' | '!=',
  ...fields: Extract<Expression, { readonly match: 'interface' }>['fields']
): Expression => ({ match: 'interface', fields, op, set });

export const field = (name: PayloadField, value: number | string, op: '==' | '!=' = '=='): Expression => ({
  match: 'payload',
  field: name,
  op,
  value,
});
