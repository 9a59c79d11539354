import type { ForwardingEntry, ForwardingWay } from '@unbounded/status';

/** What the data path is to forward by and what the kernel has, entry by entry. */

/** One entry, of the plan or of the kernel. */
export interface Side {
  readonly ways: readonly ForwardingWay[];
  /** The same for what is the same, whether or not it shows in the ways. */
  readonly fingerprint: string;
}

/** Nodes of each next-hop group to which packets go now, by its name; a group that is not there: not known yet. */
export type GroupsInUse = ReadonlyMap<string, ReadonlySet<string>>;

const stateOf = (wanted: Side | undefined, present: Side | undefined): ForwardingEntry['state'] => {
  if (!present) return 'Missing';
  if (!wanted) return 'Unwanted';
  return wanted.fingerprint === present.fingerprint ? 'InSync' : 'Different';
};

export const compareSides = (
  table: string,
  wanted: ReadonlyMap<string, Side>,
  present: ReadonlyMap<string, Side>,
): ForwardingEntry[] =>
  [...new Set([...wanted.keys(), ...present.keys()])].map((key) => {
    const [planned, seen] = [wanted.get(key), present.get(key)];
    return {
      ...{ table, key, state: stateOf(planned, seen) },
      ...(planned && { wanted: [...planned.ways] }),
      ...(seen && { present: [...seen.ways] }),
    };
  });
