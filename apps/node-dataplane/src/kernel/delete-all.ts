import { isAbsent, type NetlinkError } from '@unbounded/netlink';

type Outcome = { readonly ok: true } | { readonly ok: false; readonly error: NetlinkError };

/** Of rules, routes, next hops or neighbors; one that is gone already is fine. @throws NetlinkError of the first that the kernel does not give up */
export const deleteAll = async <T>(
  kind: { apply(changes: readonly { readonly op: 'delete'; readonly value: T }[]): Promise<readonly Outcome[]> },
  values: readonly T[],
): Promise<void> => {
  const results = await kind.apply(values.map((value) => ({ op: 'delete' as const, value })));
  for (const result of results) if (!result.ok && !isAbsent(result.error)) throw result.error;
};
