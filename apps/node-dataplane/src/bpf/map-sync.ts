import { BpfError, type BpfMap } from '@unbounded/libbpf-ts';
import type { Problem } from '@unbounded/topology';

/** Brings a map to wanted contents by writing only what differs: an entry that is right is never written again. */
export interface SyncResult {
  readonly written: number;
  readonly problems: readonly Problem[];
}

const E2BIG = 7;
const ENOSPC = 28;

const isFull = (error: unknown): boolean =>
  error instanceof BpfError && (error.errno === E2BIG || error.errno === ENOSPC);

/** Object fields in any order, undefined ones as absent; JSON has no bigint. */
export const fingerprint = (value: unknown): string =>
  JSON.stringify(value, (_key, field: unknown) =>
    typeof field === 'object' && field !== null && !Array.isArray(field)
      ? Object.fromEntries(Object.entries(field).sort(([a], [b]) => (a < b ? -1 : 1)))
      : typeof field === 'bigint'
        ? `${field}n`
        : field,
  );

/**
 * Writes these entries; those for which there is no room are a problem, and the others are written.
 * @param textOf a key, in words
 */
export const setEntries = <K, V>(
  name: string,
  map: Pick<BpfMap<K, V>, 'set'> & { readonly info: { readonly maxEntries: number } },
  entries: readonly (readonly [key: K, value: V])[],
  textOf: (key: K) => string = String,
): SyncResult => {
  const refused: string[] = [];
  for (const [key, value] of entries) {
    try {
      map.set(key, value);
    } catch (error) {
      if (!isFull(error)) throw error;
      refused.push(textOf(key));
    }
  }
  const problems = refused.length === 0 ? [] : [fullProblem(name, map.info.maxEntries, refused)];
  return { written: entries.length - refused.length, problems };
};

/** Adds and corrects. What is too much stays until {@link removeStaleEntries}. */
export const writeEntries = <K, V>(name: string, map: BpfMap<K, V>, wanted: ReadonlyMap<K, V>): SyncResult => {
  const present = new Map([...map.entries()].map(([key, value]) => [key, fingerprint(value)]));
  return setEntries(
    name,
    map,
    [...wanted].filter(([key, value]) => present.get(key) !== fingerprint(value)),
  );
};

const fullProblem = (name: string, maxEntries: number, refused: readonly string[]): Problem => ({
  reason: 'MapFull',
  message: `map ${name} is full with ${maxEntries} entries: ${refused.length} more do not fit (the first is ${refused[0]})`,
});

export const removeStaleEntries = <K, V>(map: BpfMap<K, V>, wanted: ReadonlyMap<K, V>): number => {
  const stale = [...map.entries()].map(([key]) => key).filter((key) => !wanted.has(key));
  for (const key of stale) map.delete(key);
  return stale.length;
};
