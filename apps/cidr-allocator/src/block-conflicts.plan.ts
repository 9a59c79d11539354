import { comparePrefixes, containsPrefix, formatPrefix, type Prefix } from '@unbounded/ip';

/** A block with whom or what it belongs to. */
export interface OwnedPrefix {
  readonly owner: string;
  readonly prefix: Prefix;
  /** Of two owners in conflict the one with the greater rank is named as the one to change. */
  readonly rank: string;
}

/** Two owners whose blocks share addresses. */
export interface BlockConflict {
  readonly owner: string;
  readonly cidr: string;
  readonly other: string;
  readonly otherCidr: string;
}

const conflictOf = (a: OwnedPrefix, b: OwnedPrefix): BlockConflict => {
  const [older, younger] = a.rank <= b.rank ? [a, b] : [b, a];
  return {
    owner: younger.owner,
    cidr: formatPrefix(younger.prefix),
    other: older.owner,
    otherCidr: formatPrefix(older.prefix),
  };
};

/**
 * Blocks of different owners that overlap, each block with the smallest one around it. Prefixes are either disjoint or
 * one is inside the other, so in sorted order the open ones form a stack: n log n, not n².
 */
export const findConflicts = (blocks: readonly OwnedPrefix[]): readonly BlockConflict[] => {
  const sorted = blocks.toSorted(
    (a, b) => comparePrefixes(a.prefix, b.prefix) || (a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0),
  );
  const around: OwnedPrefix[] = [];
  const conflicts: BlockConflict[] = [];
  for (const block of sorted) {
    while (around.length > 0 && !containsPrefix(around.at(-1)!.prefix, block.prefix)) around.pop();
    const outer = around.findLast(({ owner }) => owner !== block.owner);
    if (outer) conflicts.push(conflictOf(outer, block));
    around.push(block);
  }
  return conflicts;
};
