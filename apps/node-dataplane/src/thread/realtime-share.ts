import { endRealtime, schedule, type Scheduled, type Wish } from './scheduling.ts';

/**
 * A real-time thread goes before all else on the node, so it must take little. What it does is decided in part by others: whoever floods
 * the node with probes, a cluster with more peers than the node can serve. One that took more than half of a processor for three seconds is
 * scheduled by niceness for a minute; keys of thousands of peers, which a first plan brings, take less.
 */

/** Of one processor. */
const LARGEST_SHARE = 0.5;
/** So many looks one after the other, of a second each. */
const MOST_LOOKS = 3;
export const BY_NICENESS_MS = 60_000;

const US_PER_MS = 1000;

/** What the share is measured with, and what is done then. */
export interface ShareSources {
  /** Processor time of the calling thread. */
  readonly cpuMs: () => number;
  readonly nowMs: () => number;
  readonly schedule: (wish: Wish) => Scheduled;
  readonly endRealtime: () => void;
}

const ofThisThread: ShareSources = {
  cpuMs() {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / US_PER_MS;
  },
  nowMs: () => performance.now(),
  schedule,
  endRealtime,
};

export interface RealtimeShare {
  /** How the thread was scheduled at first. */
  readonly scheduled: Scheduled;
  /** To be called every second. Returns how the thread is scheduled from now on, if that has changed. */
  check(): Scheduled | undefined;
}

/** Schedules the calling thread as wished. */
export const scheduleWithinShare = (wish: Wish, sources = ofThisThread): RealtimeShare => {
  const first = sources.schedule(wish);
  let isRealtime = first.scheduling === 'realtime';
  let last = { cpuMs: sources.cpuMs(), nowMs: sources.nowMs() };
  /** When it may be real-time again; undefined: it was not permitted at all. */
  let againMs: number | undefined;

  /** Looks at which it had taken too much, until now. */
  let looks = 0;

  const limit = (share: number): Scheduled | undefined => {
    try {
      sources.endRealtime();
    } catch {
      return undefined; // it stays real-time, and the next look tries again
    }
    const limited = sources.schedule({ ...wish, isRealtime: false });
    [isRealtime, looks] = [false, 0];
    againMs = last.nowMs + BY_NICENESS_MS;
    const percent = Math.round(share * 100);
    return {
      ...limited,
      error: `it took ${percent} % of a processor, at most ${LARGEST_SHARE * 100} % as a real-time thread`,
    };
  };
  const again = (): Scheduled => {
    const scheduled = sources.schedule(wish);
    isRealtime = scheduled.scheduling === 'realtime';
    againMs = undefined;
    return scheduled;
  };

  return {
    scheduled: first,
    check() {
      const { cpuMs, nowMs } = last;
      last = { cpuMs: sources.cpuMs(), nowMs: sources.nowMs() };
      const share = (last.cpuMs - cpuMs) / (last.nowMs - nowMs);
      if (isRealtime) {
        looks = share > LARGEST_SHARE ? looks + 1 : 0;
        return looks >= MOST_LOOKS ? limit(share) : undefined;
      }
      if (againMs === undefined || last.nowMs < againMs) return undefined;
      return again();
    },
  };
};
