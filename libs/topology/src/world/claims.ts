import { AddressSet, comparePrefixes, containsPrefix, formatPrefix, overlaps, type Prefix } from '@unbounded/ip';
import type { Holders } from './holdings.ts';
import type { Member } from './world.ts';
import type { Problem } from './problem.ts';

/**
 * What two members claim. The controllers record each value with one node; where an object shows it twice all the same, it
 * stays with the node that had it in this node's last plan, then with a gateway rather than a worker, and otherwise nobody
 * has it: a name decides nothing, so that nobody can take a value from another by its name.
 */

type KeyField = 'publicKey' | 'nextPublicKey';

interface KeyClaim {
  readonly member: Member;
  readonly field: KeyField;
}

/** The lower one wins. A key in use counts more than one that is announced. */
const keyRank = ({ member, field }: KeyClaim): number =>
  (field === 'publicKey' ? 0 : 2) + (member.pool === undefined ? 1 : 0);

/** The claim that stands; undefined: it cannot be decided, and none does. */
const standing = (claims: readonly KeyClaim[], holder: string | undefined): KeyClaim | undefined => {
  const held = claims.filter(({ member }) => member.name === holder);
  const candidates = held.length > 0 ? held : claims;
  const best = Math.min(...candidates.map(keyRank));
  const [first, ...others] = candidates.filter((claim) => keyRank(claim) === best);
  return others.length === 0 ? first : undefined;
};

const keyProblem = (key: string, { member, field }: KeyClaim, holder: string | undefined): Problem => {
  const { name } = member;
  const isNext = field === 'nextPublicKey';
  const file = isNext ? '/etc/wireguard/server.next.priv' : '/etc/wireguard/server.priv';
  const effect = isNext ? `the key rotation of node ${name} waits` : `node ${name} gets no links`;
  const message =
    holder === undefined
      ? `node ${name} announces the ${isNext ? 'next ' : ''}WireGuard public key ${key}, as another node does, and it cannot be decided whose it is: ${effect}; delete ${file} on the node to which the key was copied and restart its agent`
      : `node ${name} announces the ${isNext ? 'next ' : ''}WireGuard public key ${key}, which belongs to node ${holder}: ${effect}; delete ${file} on node ${name} and restart its agent`;
  return { reason: 'DuplicateKey', message };
};

/** Every key, current or next, stands with one member at most. */
export const uniqueKeys = (members: readonly Member[], holders: Holders, problems: Problem[]): Member[] => {
  const claims = new Map<string, KeyClaim[]>();
  for (const member of members)
    for (const field of ['publicKey', 'nextPublicKey'] as const) {
      const key = member[field];
      if (key !== undefined) claims.set(key, [...(claims.get(key) ?? []), { member, field }]);
    }
  const dropped = new Map<string, Set<KeyField>>();
  for (const [key, claimed] of claims) {
    if (claimed.length === 1) continue;
    const winner = standing(claimed, holders.keyHolder(key));
    for (const claim of claimed.filter((one) => one !== winner)) {
      const { name } = claim.member;
      dropped.set(name, (dropped.get(name) ?? new Set()).add(claim.field));
      problems.push(keyProblem(key, claim, winner?.member.name));
    }
  }
  return members.map((member) => {
    const fields = dropped.get(member.name);
    if (!fields) return member;
    const nextPublicKey = fields.has('nextPublicKey') || fields.has('publicKey') ? undefined : member.nextPublicKey;
    return { ...member, publicKey: fields.has('publicKey') ? undefined : member.publicKey, nextPublicKey };
  });
};

/** A block that a member claims. */
export interface BlockClaim {
  readonly member: Member;
  readonly prefix: Prefix;
  /** The lower one wins. */
  readonly rank: number;
}

/** Claims that share an address with a claim of another member, of those in the order of their prefixes. */
const conflicting = (sorted: readonly BlockClaim[]): Set<BlockClaim> => {
  const found = new Set<BlockClaim>();
  const covering: BlockClaim[] = [];
  for (const claim of sorted) {
    while (covering.length > 0 && !containsPrefix(covering.at(-1)!.prefix, claim.prefix)) covering.pop();
    for (const wider of covering) {
      if (wider.member.name === claim.member.name) continue;
      found.add(wider);
      found.add(claim);
    }
    covering.push(claim);
  }
  return found;
};

const blockConflict: DescribeConflict = ({ member, prefix }, other, isOthers) => ({
  reason: 'PodCIDROverlap',
  message: `${formatPrefix(prefix)} of node ${member.name} overlaps ${formatPrefix(other.prefix)} of node ${other.member.name}, ${isOthers ? 'which keeps it' : 'and it cannot be decided whose it is: it is routed to neither'}: every node needs addresses of its own; delete and re-create the Node that got its addresses last`,
});

/** @param isOthers the other claim stands; false: neither does */
type DescribeConflict = (claim: BlockClaim, other: BlockClaim, isOthers: boolean) => Problem;

/** The claims that stand: none shares an address with one of another member. */
export const settleBlocks = (
  claims: readonly BlockClaim[],
  problems: Problem[],
  describe: DescribeConflict = blockConflict,
): BlockClaim[] => {
  const sorted = claims.toSorted(
    (a, b) => comparePrefixes(a.prefix, b.prefix) || (a.member.name < b.member.name ? -1 : 1),
  );
  const disputed = conflicting(sorted);
  if (disputed.size === 0) return sorted;
  const lost = new Set<BlockClaim>();
  let granted: BlockClaim[] = [];
  /** Granted, or claimed by several of one rank: then nobody has it, neither does a claim that counts less, of whichever member. */
  let taken = AddressSet.empty;
  for (const rank of [...new Set([...disputed].map((claim) => claim.rank))].sort((a, b) => a - b)) {
    const free = [...disputed].filter((claim) => claim.rank === rank && !taken.overlaps(claim.prefix));
    const tied = conflicting(free.toSorted((a, b) => comparePrefixes(a.prefix, b.prefix)));
    granted = [...granted, ...free.filter((claim) => !tied.has(claim))];
    taken = taken.union(AddressSet.of(free.map(({ prefix }) => prefix)));
  }
  const standsIn = new Set(granted);
  for (const claim of sorted.filter((one) => disputed.has(one) && !standsIn.has(one))) {
    lost.add(claim);
    const { member, prefix } = claim;
    const shares = (other: BlockClaim): boolean => other.member.name !== member.name && overlaps(other.prefix, prefix);
    const owner = granted.find(shares);
    const other = owner ?? [...disputed].find(shares)!;
    problems.push(describe(claim, other, owner !== undefined));
  }
  return sorted.filter((claim) => !lost.has(claim));
};
