import type { ClusterView } from '@unbounded/status';

/**
 * connecting: a stream is being opened. live: it is open. waiting: it is down, and the next attempt comes at `retryAt`. ended: the token is
 * not accepted (any more), and nothing is tried until there is another one.
 */
type Phase = 'connecting' | 'live' | 'waiting' | 'ended';

/** All times are of the elapsed clock (`performance.now()`). */
export interface StreamState {
  readonly phase: Phase;
  readonly view?: ClusterView;
  /** Absent beside a view: a message could not be read, and all of the view is to come anew. */
  readonly position?: string;
  /** When the last message came. */
  readonly updatedAt?: number;
  /** When the server last said, by a message or by an answer, that the view is the current one. */
  readonly confirmedAt?: number;
  readonly retryAt?: number;
  /** What hinders the server, as it says itself. */
  readonly notices?: readonly string[];
  /** Why it is down, or ended. */
  readonly reason?: string;
}

/** Older than this, what is shown is called stale. */
const STALE_AFTER_MS = 15_000;

/** What is shown may not be what is. */
export const isStale = ({ phase, position, confirmedAt }: StreamState, now: number): boolean =>
  confirmedAt !== undefined && (phase !== 'live' || position === undefined || now - confirmedAt > STALE_AFTER_MS);
