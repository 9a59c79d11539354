import { MAX_NODE_ADDRESSES } from '@unbounded/crds';
import { type NodeFacts } from '@unbounded/membership';

/** What a DNS name stands for, as far as is known. */
export interface Resolved {
  readonly addresses: readonly string[];
  readonly error?: string;
}

/** A DNS name of a gateway that could not be resolved. */
export interface UnresolvedName {
  readonly node: string;
  readonly name: string;
  readonly error: string;
  /** What is used meanwhile. */
  readonly addresses: readonly string[];
}

export interface ExternalPlan {
  readonly facts: NodeFacts;
  readonly unresolved: readonly UnresolvedName[];
}

/**
 * The facts with the addresses of their DNS names. As long as no name has any (after a restart, or while DNS is down), what the
 * pool's status lists for the node counts: it is the last result.
 */
export const planExternalAddresses = (
  facts: NodeFacts,
  listed: readonly string[],
  resolvedOf: (name: string) => Resolved | undefined,
): ExternalPlan => {
  if (facts.externalNames.length === 0) return { facts, unresolved: [] };
  const found = facts.externalNames.flatMap((name) => resolvedOf(name)?.addresses ?? []);
  const all = [...facts.externalIPs, ...(found.length > 0 ? found : listed)];
  const externalIPs = [...new Set(all)].slice(0, MAX_NODE_ADDRESSES);
  const unresolved = facts.externalNames.flatMap((name): UnresolvedName[] => {
    const error = resolvedOf(name)?.error;
    return error === undefined ? [] : [{ node: facts.name, name, error, addresses: externalIPs }];
  });
  return { facts: { ...facts, externalIPs, externalNames: [] }, unresolved };
};
