/**
 * Numbers for next-hop groups. An endpoint's record holds the number, so a group keeps its number for as long as it
 * lives, also over a restart: otherwise records would point at another group's members for a moment.
 */

const LARGEST = 0xffff; // the upper 16 bits of a record's flags; 0 is never given

export interface GroupIndexes {
  indexOf(name: string): number;
  /** As a value, for the state file. */
  toJSON(): Record<string, number>;
  /** Gives up the numbers of groups that are no more. */
  keepOnly(names: ReadonlySet<string>): void;
}

/** @param known what an earlier process gave out */
export const createGroupIndexes = (known: Readonly<Record<string, number>> = {}): GroupIndexes => {
  const indexes = new Map(Object.entries(known));
  return {
    indexOf(name) {
      const given = indexes.get(name);
      if (given !== undefined) return given;
      const taken = new Set(indexes.values());
      let free = 1;
      while (taken.has(free)) free++;
      if (free > LARGEST) throw new Error(`no number is left for next-hop group ${name}: ${LARGEST} groups exist`);
      indexes.set(name, free);
      return free;
    },
    toJSON: () => Object.fromEntries(indexes),
    keepOnly(names) {
      for (const name of indexes.keys()) if (!names.has(name)) indexes.delete(name);
    },
  };
};
