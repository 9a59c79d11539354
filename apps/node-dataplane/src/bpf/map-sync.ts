import { BpfError, type BpfMap } from '@unbounded/libbpf-ts';
import type { Problem } from '@unbounded/topology';

/** Brings a map to wanted contents by writing only what differs: an entry that is right is never written again. */
export interface SyncResult {
  readonly written: number;
  readonly problems: readonly Problem[];
}

const E2BIG = 7;
const ENOSPC = 28;

export const isFull = (error: unknown): boolean =>
  error instanceof BpfError && (error.errno === E2BIG || error.errno === ENOSPC);

/** Object fields in any order, undefined ones as absent. */
export const fingerprint = (value: unknown): string =>
  JSON.stringify(value, (_key, field: unknown) =>
    typeof field === 'object' && field !== null && !Array.isArray(field)
      ? Object.fromEntries(Object.entries(field).sort(([a], [b]) => (a < b ? -1 : 1)))
      : field,
  );

/** Adds and corrects. What is too much stays until {@link removeStaleEntries}. */
export const writeEntries = <K, V>(name: string, map: BpfMap<K, V>, wanted: ReadonlyMap<K, V>): SyncResult => {
  const present = new Map([...map.entries()].map(([key, value]) => [key, fingerprint(value)]));
  const changed = [...wanted].filter(([key, value]) => present.get(key) !== fingerprint(value));
  const refused: K[] = [];
  for (const [key, value] of changed) {
    try {
      map.set(key, value);
    } catch (error) {
      if (!isFull(error)) throw error;
      refused.push(key); // what is in the map stays, and the other changes go on
    }
  }
  const problems = refused.length === 0 ? [] : [fullProblem(name, map.info.maxEntries, refused)];
  return { written: changed.length - refused.length, problems };
};

export const fullProblem = (name: string, maxEntries: number, refused: readonly unknown[]): Problem => ({
  reason: 'MapFull',
  message: `map ${name} is full with ${maxEntries} entries: ${refused.length} more do not fit (the first is ${String(refused[0])})`,
});

export const removeStaleEntries = <K, V>(map: BpfMap<K, V>, wanted: ReadonlyMap<K, V>): number => {
  const stale = [...map.entries()].map(([key]) => key).filter((key) => !wanted.has(key));
  for (const key of stale) map.delete(key);
  return stale.length;
};
