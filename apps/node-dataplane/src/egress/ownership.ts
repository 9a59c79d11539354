import type { Ownership } from './fence.ts';

/**
 * The node owns its addresses until the controller takes them back, and the controller gives none to another before the node has confirmed
 * that: so there are never two. A node that hears of nobody any more cannot be told; an operator who states that it is off is right once it
 * has been silent for this long. One that starts has heard of nobody yet, however often it starts: until then what an agent before it has renewed
 * holds, and no longer.
 */
const ISOLATED_MS = 15_000;

export interface Contact extends Ownership {
  /** The API server has answered. */
  heard(): void;
}

/** @param peersHeardMs when a peer in the overlay was last known to answer, by `performance.now()` */
export const createContact = (
  peersHeardMs: () => number,
  {
    now = () => performance.now(),
    isolatedMs = ISOLATED_MS,
  }: { readonly now?: () => number; readonly isolatedMs?: number } = {},
): Contact => {
  let heardMs = -Infinity;
  return {
    heard: () => {
      heardMs = now();
    },
    isOwner: () => now() - Math.max(heardMs, peersHeardMs()) < isolatedMs,
  };
};

/** Without an API server nobody takes addresses back. */
export const ALWAYS: Contact = { heard: () => undefined, isOwner: () => true };
