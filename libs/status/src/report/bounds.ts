import { z } from 'zod';
import { recordOf } from './entries.ts';
import { isJsonObject } from './merge-patch.ts';

/** What a report may have of each: a node is not trusted to be modest. */

/** Names of nodes, sites, devices and reasons: a DNS subdomain at most (RFC 1123). */
export const name = z.string().min(1).max(253);
/** What people read. */
export const message = z.string().max(2048);
/** Of a whole number of things; sums of a cluster's stay exact. */
export const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
export const milliseconds = z.number().min(0).max(1e9);

type Entries = Readonly<Record<string, unknown>>;

const sizeOf = (value: unknown): number => (isJsonObject(value) ? Object.keys(value).length : 0);
const memberOf = (value: unknown, member: string): unknown => (isJsonObject(value) ? value[member] : undefined);

/** @returns undefined, or what is wrong with all entries together */
type TotalCheck = (all: Entries) => string | undefined;

/** Of one member of all entries together: a bound of each alone multiplies with that of the entries. */
export const totalOf =
  (member: string, most: number): TotalCheck =>
  (all) => {
    const total = Object.values(all).reduce<number>((sum, entry) => sum + sizeOf(memberOf(entry, member)), 0);
    return total > most ? `must have at most ${most} ${member} together` : undefined;
  };

/** Of entries that say the same in one member. Where it is absent any number may. */
export const eachOf =
  (member: string, most: number): TotalCheck =>
  (all) => {
    const counts = new Map<unknown, number>();
    for (const entry of Object.values(all)) {
      const value = memberOf(entry, member);
      if (value === undefined) continue;
      const known = (counts.get(value) ?? 0) + 1;
      if (known > most) return `must have at most ${most} of the same ${member}`;
      counts.set(value, known);
    }
    return undefined;
  };

const firstOf = (checks: readonly TotalCheck[], all: Entries): string | undefined => {
  for (const check of checks) {
    const wrong = check(all);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
};

/**
 * By name, at most so many: a report with more is refused, since nobody knows which of them count. They are counted before any of them is
 * looked at.
 */
export const byName = <T extends z.ZodType>(value: T, most: number, ...checks: readonly TotalCheck[]) =>
  recordOf(value, {
    key: name,
    check: (all) => (sizeOf(all) > most ? `must be an object of at most ${most} entries` : firstOf(checks, all)),
  });

/** A word of a list; one that a later version added is Unknown, and never taken for a good one. */
export const word = <const T extends readonly string[]>(words: T) => z.enum([...words, 'Unknown']).catch('Unknown');
