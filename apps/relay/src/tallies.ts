import type { Refusal } from './admission.ts';

/**
 * Why a connection ended. `no-register`: its first bytes were no Register; `not-registered`: none came in time;
 * `unfinished`: a frame was begun and not ended in time; `not-permitted`: its key is not in the list; `too-many`: no room for
 * another key; `evicted`: it had proven nothing, and another one needed its place.
 */
export type CloseReason =
  | 'by-peer'
  | 'error'
  | 'no-register'
  | 'not-registered'
  | 'not-proven'
  | 'not-permitted'
  | 'too-many'
  | 'evicted'
  | 'bad-length'
  | 'malformed'
  | 'displaced'
  | 'idle'
  | 'unfinished'
  | 'slow'
  | 'proxy'
  | 'tls'
  | 'drained';

/** Counts of the forwarding path: plain numbers, which relay-metrics.ts carries over to Prometheus once a second. */
export interface Tallies {
  frames: number;
  bytes: number;
  linkFrames: number;
  /** Frames that did not reach anybody. */
  readonly dropped: {
    /** Nobody has registered the destination's key. */
    unknown: number;
    /** The destination reads too slowly, or there is no memory for its queue. */
    slow: number;
    /** The sender's registration is not granted (yet). */
    unregistered: number;
    /** Too short to have a key. */
    malformed: number;
    /** Came over a link for a client that is not here. */
    stray: number;
  };
  /** Frames of types that this relay does not know, or that make no sense where they came. */
  ignored: number;
  readonly registrations: { proven: number; unproven: number };
  readonly handshakes: { proven: number; refused: number; busy: number; expired: number; lowOrder: number };
  readonly closed: Record<CloseReason, number>;
  /** Connections that were not taken. */
  readonly refused: Record<Refusal | 'links', number>;
  /** Times that a sender was not read for a moment. */
  readonly held: { rate: number; wait: number };
}

export const newTallies = (): Tallies => ({
  frames: 0,
  bytes: 0,
  linkFrames: 0,
  dropped: { unknown: 0, slow: 0, unregistered: 0, malformed: 0, stray: 0 },
  ignored: 0,
  registrations: { proven: 0, unproven: 0 },
  handshakes: { proven: 0, refused: 0, busy: 0, expired: 0, lowOrder: 0 },
  closed: {
    'by-peer': 0,
    error: 0,
    'no-register': 0,
    'not-registered': 0,
    'not-proven': 0,
    'not-permitted': 0,
    'too-many': 0,
    evicted: 0,
    'bad-length': 0,
    malformed: 0,
    displaced: 0,
    idle: 0,
    unfinished: 0,
    slow: 0,
    proxy: 0,
    tls: 0,
    drained: 0,
  },
  refused: { total: 0, address: 0, rate: 0, links: 0 },
  held: { rate: 0, wait: 0 },
});
