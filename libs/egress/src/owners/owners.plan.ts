import type { OwnedAddress } from '@unbounded/crds';
import { formatAddress } from '@unbounded/ip';

import type { RuleAddress } from '../addresses/rule-address.ts';
import { compareTexts } from '../order.ts';
import { preferred } from '../rendezvous.ts';
import type { EgressNode } from '../snapshot.ts';
import type { Candidates } from './candidates.ts';
import type { Grant, GrantBook } from './grants.ts';
import { createRoom, type Room } from './room.ts';

/** Why an address has no owner, or one that does not answer. */
export type OwnerTrouble =
  | 'NoCandidate'
  | 'OutsideSubnets'
  | 'NoLiveCandidate'
  | 'NodesFull'
  | 'OwnerSilent'
  | 'AwaitingRelease'
  | 'AddressNotHeld';

/** Who owns an address. */
export interface Ownership {
  /** Undefined: nobody, and no node may use it. */
  readonly owner: string | undefined;
  readonly epoch: number;
  readonly trouble: OwnerTrouble | undefined;
  /** The node that must release the address before another one can own it, or the owner that does not answer or has not taken it. */
  readonly blockedBy: string | undefined;
  /** That node is not the one of today's Node of its name: whoever takes that for the former owner would wait for its word. */
  readonly isFormer?: true;
}

export interface OwnerPlan {
  /** By the canonical text of the address. */
  readonly ownerships: ReadonlyMap<string, Ownership>;
  /** What the slices of each node say that it owns or releases. */
  readonly owned: ReadonlyMap<string, readonly OwnedAddress[]>;
}

interface OwnerContext {
  readonly book: GrantBook;
  readonly candidatesOf: (address: RuleAddress) => Candidates;
  readonly nodes: readonly EgressNode[];
}

/** What becomes of one address: its owner, and grants that are to end. */
interface Decision {
  readonly ownership: Ownership;
  /** The candidate that has the address or is to get it. */
  readonly first: string | undefined;
  readonly releases: readonly Grant[];
}

/** Without a candidate that has room. */
const troubleOf = ({ selected, attached, live }: Candidates): OwnerTrouble => {
  if (live.length > 0) return 'NodesFull';
  if (attached.length > 0) return 'NoLiveCandidate';
  return selected.length > 0 ? 'OutsideSubnets' : 'NoCandidate';
};

const waitFor = (first: string | undefined, grants: readonly Grant[], epoch: number): Decision => ({
  first,
  ownership: {
    owner: undefined,
    epoch,
    trouble: 'AwaitingRelease',
    blockedBy: grants[0]!.node,
    ...(grants[0]!.isFormer && { isFormer: true }),
  },
  releases: grants.filter(({ isFormer }) => !isFormer),
});

interface DecisionContext {
  readonly book: GrantBook;
  readonly room: Room;
  readonly isAlive: (node: string) => boolean;
}

/**
 * The first candidate by hash that has room. Another node that may hold the address is asked to release it and has to confirm that; one that
 * does not answer keeps it: its data path may work on, and nobody can know that it does not.
 */
const decide = (text: string, candidates: Candidates, { book, room, isAlive }: DecisionContext): Decision => {
  const grants = book.grants.get(text) ?? [];
  const epoch = book.epochOf(text);
  const first = preferred(
    text,
    candidates.live.map(({ name }) => name).filter((name) => room.has(name, text)),
  );
  const ofFirst = (number: number): Decision => ({
    ownership: { owner: first, epoch: number, trouble: undefined, blockedBy: undefined },
    first,
    releases: [],
  });
  const [grant, ...others] = grants;
  if (!grant) {
    if (first !== undefined) return ofFirst(book.nextEpoch(text, first));
    const ownership = { owner: undefined, epoch, trouble: troubleOf(candidates), blockedBy: undefined };
    return { ownership, first, releases: [] };
  }
  // More than one grant was not written by a plan: nobody may go on.
  if (others.length > 0) return waitFor(first, grants, epoch);
  if (grant.isFormer || (grant.isReleasing && grant.node !== first)) return waitFor(first, grants, epoch);
  if (grant.isReleasing) return ofFirst(book.nextEpoch(text, grant.node));
  if (!isAlive(grant.node)) {
    return {
      ownership: { owner: grant.node, epoch: grant.epoch, trouble: 'OwnerSilent', blockedBy: grant.node },
      first: grant.node,
      releases: [],
    };
  }
  return grant.node === first ? ofFirst(grant.epoch) : waitFor(first, grants, epoch);
};

/** An owner asks the LAN whether anybody has the address before it takes it, and somebody may. */
const untilHeld = (text: string, ownership: Ownership, book: GrantBook): Ownership => {
  const { owner: node, epoch, trouble } = ownership;
  if (node === undefined || trouble || book.isHeld(text, { node, epoch })) return ownership;
  return { ...ownership, trouble: 'AddressNotHeld', blockedBy: node };
};

const entryOf = ({ text, pool }: RuleAddress, epoch: number): OwnedAddress => {
  const nextHops = (pool?.nextHops ?? []).filter(({ family }) => (family === 6) === text.includes(':'));
  return {
    address: text,
    epoch,
    ...(pool?.interface === undefined ? {} : { interface: pool.interface }),
    ...(nextHops.length === 0 ? {} : { nextHops: nextHops.map(formatAddress) }),
    announce: pool?.announce ?? 'L2',
  };
};

const releaseOf = (address: string, { epoch }: Grant): OwnedAddress => ({
  address,
  epoch,
  release: true,
  announce: 'None',
});

/** Owners of the addresses, and the release of those that no rule has any more. An address has one owner or none, never two. */
export const planOwners = (
  addresses: readonly RuleAddress[],
  { book, candidatesOf, nodes }: OwnerContext,
): OwnerPlan => {
  const alive = new Set(nodes.filter(({ isAlive }) => isAlive).map(({ name }) => name));
  const usable = new Map(addresses.filter(({ isUsable }) => isUsable).map((address) => [address.text, address]));
  const ownerships = new Map<string, Ownership>();
  const owned = new Map<string, OwnedAddress[]>();
  const give = (node: string, entry: OwnedAddress): void => {
    const entries = owned.get(node);
    if (entries) entries.push(entry);
    else owned.set(node, [entry]);
  };
  const context = { book, room: createRoom(book), isAlive: (node: string) => alive.has(node) };
  for (const [text, address] of [...usable].toSorted(([a], [b]) => compareTexts(a, b))) {
    const { ownership, first, releases } = decide(text, candidatesOf(address), context);
    context.room.take(text, [...(first === undefined ? [] : [first]), ...releases.map(({ node }) => node)]);
    ownerships.set(text, untilHeld(text, ownership, book));
    if (ownership.owner !== undefined) give(ownership.owner, entryOf(address, ownership.epoch));
    for (const grant of releases) give(grant.node, releaseOf(text, grant));
  }
  for (const [text, grants] of [...book.grants].toSorted(([a], [b]) => compareTexts(a, b))) {
    if (usable.has(text)) continue;
    for (const grant of grants) if (!grant.isFormer) give(grant.node, releaseOf(text, grant));
  }
  return { ownerships, owned };
};
