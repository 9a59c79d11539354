import { MAX_NODE_ADDRESSES } from '@unbounded/crds';
import { type Family, tryParseAddress } from '@unbounded/ip';
import type { NodeFacts, NodeProblemReason, SettledNode } from '@unbounded/membership';

/** What a DNS name stands for, as far as is known. */
export interface Resolved {
  readonly addresses: readonly string[];
  readonly error?: string;
  readonly otherFamily?: string;
  readonly unanswered?: readonly Family[];
}

/** A DNS name of a gateway that could not be resolved. */
export interface UnresolvedName {
  readonly node: string;
  readonly name: string;
  readonly error: string;
  /** What is used meanwhile. */
  readonly addresses: readonly string[];
}

/** A DNS name of a gateway that has an address, but whose addresses of one family could not be asked for. */
export interface HalfResolvedName {
  readonly node: string;
  readonly name: string;
  readonly otherFamily: string;
}

export interface ExternalPlan {
  readonly facts: NodeFacts;
  /** The node has DNS names. */
  readonly isNamed: boolean;
  readonly unresolved: readonly UnresolvedName[];
  readonly halfResolved: readonly HalfResolvedName[];
}

/**
 * The facts with the addresses of their DNS names. As long as no name has any (after a restart, or while DNS is down), what the
 * pool's status lists for the node counts: it is the last result. So it does in a family that nobody has answered for.
 */
export const planExternalAddresses = (
  facts: NodeFacts,
  listed: readonly string[],
  resolvedOf: (name: string) => Resolved | undefined,
): ExternalPlan => {
  if (facts.externalNames.length === 0) return { facts, isNamed: false, unresolved: [], halfResolved: [] };
  const found = facts.externalNames.flatMap((name) => resolvedOf(name)?.addresses ?? []);
  const unanswered = new Set(facts.externalNames.flatMap((name) => resolvedOf(name)?.unanswered ?? []));
  const isLast = (text: string): boolean => {
    const address = tryParseAddress(text);
    return address !== undefined && unanswered.has(address.family);
  };
  const last = found.length > 0 ? listed.filter(isLast) : listed;
  const all = [...facts.externalIPs, ...found, ...last];
  const externalIPs = [...new Set(all)].slice(0, MAX_NODE_ADDRESSES);
  const unresolved = facts.externalNames.flatMap((name): UnresolvedName[] => {
    const error = resolvedOf(name)?.error;
    return error === undefined ? [] : [{ node: facts.name, name, error, addresses: externalIPs }];
  });
  const halfResolved = facts.externalNames.flatMap((name): HalfResolvedName[] => {
    const otherFamily = resolvedOf(name)?.otherFamily;
    return otherFamily === undefined ? [] : [{ node: facts.name, name, otherFamily }];
  });
  return { facts: { ...facts, externalIPs, externalNames: [] }, isNamed: true, unresolved, halfResolved };
};

/** An address that a DNS name of a gateway stands for and that is not used. */
export interface RefusedAddress {
  readonly node: string;
  readonly message: string;
}

const REFUSALS: ReadonlySet<NodeProblemReason> = new Set(['ExternalAddressInSite', 'AddressTaken']);

/** What settling refused of a name's addresses: only who resolves names knows of them, and tells of them here. */
export const refusedAddresses = ({ facts, problems }: SettledNode): readonly RefusedAddress[] =>
  problems
    .filter(({ reason, field }) => REFUSALS.has(reason) && field !== 'status.addresses') // of the annotation
    .map(({ message }) => ({ node: facts.name, message }));
