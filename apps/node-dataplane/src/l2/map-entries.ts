import type { BpfMap } from '@unbounded/libbpf-ts';
import type { Problem } from '@unbounded/topology';
import { fingerprint, setEntries } from '../bpf/map-sync.ts';
import type { Entries } from './tables.plan.ts';

/** Brings maps whose keys have several fields to wanted contents: what is right is never written again. */

export interface MapSync {
  readonly problems: readonly Problem[];
  /** Of the wanted ones, not counting those for which there was no room. */
  removeStale(): void;
}

type Writable<K, V> = Pick<BpfMap<K, V>, 'set' | 'delete' | 'entries'> & {
  readonly info: { readonly maxEntries: number };
};

/**
 * Adds and corrects.
 * @param keepsValues what stands in an entry that is there is not ours to write
 */
export const syncEntries = <K, V>(
  name: string,
  map: Writable<K, V>,
  wanted: Entries<K, V>,
  { keepsValues = false } = {},
): MapSync => {
  const present = new Map([...map.entries()].map(([key, value]) => [fingerprint(key), { key, value }]));
  const isRight = ([key, value]: readonly [K, V]): boolean => {
    const found = present.get(fingerprint(key));
    return found !== undefined && (keepsValues || fingerprint(found.value) === fingerprint(value));
  };
  const changed = wanted.filter((entry) => !isRight(entry));
  const { problems } = setEntries<K, V>(name, map, changed, fingerprint);
  return {
    problems,
    removeStale() {
      const kept = new Set(wanted.map(([key]) => fingerprint(key)));
      for (const [text, { key }] of present) if (!kept.has(text)) map.delete(key);
    },
  };
};
