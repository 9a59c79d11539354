import type { PathReport } from './messages.ts';

/** Since when each path is the one in use, for people. */

export interface TimedPath extends PathReport {
  /** By the wall clock, RFC 3339. */
  readonly sinceTime: string;
}

export interface PathClocks {
  /** Milliseconds since 1970, by a clock that may be set. */
  readonly wallMs: number;
  /** As {@link monotonicMs}. */
  readonly elapsedMs: number;
}

const NS_PER_MS = 1_000_000n;

/** Milliseconds of CLOCK_MONOTONIC. `performance.now()` begins anew in each thread; this does not. */
export const monotonicMs = (): number => Number(process.hrtime.bigint() / NS_PER_MS);

/**
 * The report with its time. The time is computed once a move: anew for each report it would differ by the milliseconds for which the
 * message was under way, and by hours after the clock was set.
 * @param before what was reported of the same session last; undefined: nothing, or it is watched anew
 */
export const timedPath = (
  before: TimedPath | undefined,
  report: PathReport,
  { wallMs, elapsedMs }: PathClocks,
): TimedPath => {
  // Another reason or endpoint of the same path, or a thread that began again and found the path as it was.
  if (before?.path === report.path) return { ...report, sinceTime: before.sinceTime };
  const agoMs = Math.max(0, elapsedMs - report.takenAtMs);
  return { ...report, sinceTime: new Date(wallMs - agoMs).toISOString() };
};
