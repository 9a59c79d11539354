import { z } from 'zod';
import { isJsonObject } from './merge-patch.ts';

/** What a report may have of each: a node is not trusted to be modest. */

/** Names of nodes, sites, devices and reasons: a DNS subdomain at most (RFC 1123). */
export const name = z.string().min(1).max(253);
/** What people read. */
export const message = z.string().max(2048);
/** Of a whole number of things; sums of a cluster's stay exact. */
export const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
export const milliseconds = z.number().min(0).max(1e9);

const hasAtMost = (value: unknown, most: number): boolean => isJsonObject(value) && Object.keys(value).length <= most;

/**
 * By name, at most so many: a report with more is refused, since nobody knows which of them count. They are counted before any of them is
 * looked at: half a million bad ones would be as many errors.
 */
export const byName = <T extends z.ZodType>(value: T, most: number) =>
  z
    .custom<Record<string, unknown>>((all) => hasAtMost(all, most), {
      error: `must be an object of at most ${most} entries`,
    })
    .pipe(z.record(name, value));

/** A word of a list; one that a later version added is Unknown, and never taken for a good one. */
export const word = <const T extends readonly string[]>(words: T) => z.enum([...words, 'Unknown']).catch('Unknown');
