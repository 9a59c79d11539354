import type { BpfMap } from '@unbounded/libbpf-ts';
import type { Problem } from '@unbounded/topology';
import { fingerprint, fullProblem, isFull } from '../bpf/map-sync.ts';
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
  const refused: string[] = [];
  const isRight = (key: string, value: V): boolean => {
    const found = present.get(key);
    return found !== undefined && (keepsValues || textOf(found.value) === textOf(value));
  };
  for (const [key, value] of wanted) {
    const text = fingerprint(key);
    if (isRight(text, value)) continue;
    try {
      map.set(key, value);
    } catch (error) {
      if (!isFull(error)) throw error;
      refused.push(text);
    }
  }
  return {
    problems: refused.length === 0 ? [] : [fullProblem(name, map.info.maxEntries, refused)],
    removeStale() {
      const kept = new Set(wanted.map(([key]) => fingerprint(key)));
      for (const [text, { key }] of present) if (!kept.has(text)) map.delete(key);
    },
  };
};

/** JSON has no whole numbers above 2^53. */
const textOf = (value: unknown): string =>
  fingerprint(
    typeof value === 'object' && value !== null
      ? Object.fromEntries(
          Object.entries(value).map(([name, field]) => [name, typeof field === 'bigint' ? `${field}` : field]),
        )
      : value,
  );
