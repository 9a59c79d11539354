import { type Family, formatPrefix, prefixOf, type Prefix } from '@unbounded/ip';

/** Who wants a value, and how strongly. Never by name: whoever chooses a name would choose the winner. */
export interface Claim {
  readonly node: string;
  /**
   * 0: set by an administrator. 1: slices or pool status list it for this node. 2: new. 3 and 4: the same of external
   * addresses, which never take an internal one from a node of its Site.
   */
  readonly strength: 0 | 1 | 2 | 3 | 4;
  /** Creation time, then uid: the older Node wins among equals. */
  readonly age: string;
}

export const isStronger = (a: Claim, b: Claim): boolean =>
  a.strength === b.strength ? a.age < b.age : a.strength < b.strength;

/** The strongest claim to each value. */
export const strongestOf = <T extends Claim>(
  claims: Iterable<readonly [value: string, claim: T]>,
): ReadonlyMap<string, T> => {
  const strongest = new Map<string, T>();
  for (const [value, claim] of claims) {
    const other = strongest.get(value);
    if (!other || isStronger(claim, other)) strongest.set(value, claim);
  }
  return strongest;
};

/** The node that holds each value; every other node that claims it goes without. */
export const holdersOf = (claims: Iterable<readonly [value: string, claim: Claim]>): ReadonlyMap<string, string> =>
  new Map([...strongestOf(claims)].map(([value, { node }]) => [value, node]));

export interface PrefixClaim extends Claim {
  readonly prefix: Prefix;
}

export interface PrefixLoss {
  readonly node: string;
  readonly prefix: Prefix;
  /** The node and block that it overlaps. */
  readonly holder: string;
  readonly held: Prefix;
}

type Granted = readonly [node: string, prefix: Prefix];

/** Blocks that were granted so far: asks for overlaps in the number of prefix lengths in use, not of blocks. */
const createGrants = (lengths: ReadonlyMap<Family, readonly number[]>) => {
  const exact = new Map<string, Granted[]>();
  const inside = new Map<string, Granted[]>();
  const around = ({ family, address, length }: Prefix): string[] =>
    lengths
      .get(family)!
      .filter((shorter) => shorter <= length)
      .map((shorter) => formatPrefix(prefixOf({ family, value: address }, shorter)));
  const push = (map: Map<string, Granted[]>, key: string, grant: Granted): void => {
    const list = map.get(key);
    // One grant of another node is enough to refuse a claim; two nodes' are kept, so that one is not the claimant's own.
    if (!list) map.set(key, [grant]);
    else if (list.every(([node]) => node !== grant[0]) && list.length < 2) list.push(grant);
  };
  return {
    overlapping: (claim: PrefixClaim): Granted | undefined =>
      [
        ...(inside.get(formatPrefix(claim.prefix)) ?? []),
        ...around(claim.prefix).flatMap((key) => exact.get(key) ?? []),
      ].find(([node]) => node !== claim.node),
    add: ({ node, prefix }: PrefixClaim): void => {
      push(exact, formatPrefix(prefix), [node, prefix]);
      for (const key of around(prefix)) push(inside, key, [node, prefix]);
    },
  };
};

const byStrength = (a: PrefixClaim, b: PrefixClaim): number => (isStronger(a, b) ? -1 : isStronger(b, a) ? 1 : 0);

/** The claims that overlap a stronger one of another node. A node's own blocks may overlap. */
export const lostPrefixes = (claims: readonly PrefixClaim[]): readonly PrefixLoss[] => {
  const lengthsOf = (family: Family): number[] => [
    ...new Set(claims.filter(({ prefix }) => prefix.family === family).map(({ prefix }) => prefix.length)),
  ];
  const grants = createGrants(
    new Map([
      [4, lengthsOf(4)],
      [6, lengthsOf(6)],
    ]),
  );
  return claims.toSorted(byStrength).flatMap((claim) => {
    const other = grants.overlapping(claim);
    if (!other) {
      grants.add(claim);
      return [];
    }
    return [{ node: claim.node, prefix: claim.prefix, holder: other[0], held: other[1] }];
  });
};
