import type { NetworkEndpoint } from '@unbounded/crds';
import { endpointKey, isBound, isListed, type L2ClusterSnapshot, type L2Entry } from '@unbounded/l2';
import { createLongStanding } from './long-standing.ts';

/**
 * An agent creates an entry, which claims its key, and then writes the status, which says whose it is. One that ends in between leaves an
 * entry that is nobody's, and an address that no pod gets. An agent claims within 20 seconds (ADD_WITHIN_MS of node-dataplane). A status of
 * an endpoint that does not have the address claims it for nobody as well.
 */

const ABANDONED_AFTER_MS = 300_000;

export interface AbandonedClaims {
  /** Entries that have been nobody's for that long. Nothing, unless all lists are complete. */
  readonly observe: (snapshot: L2ClusterSnapshot) => readonly L2Entry[];
  /** Until the next one may be abandoned; undefined: all are somebody's. */
  readonly nextMs: () => number | undefined;
}

/** One whose endpoint is gone is removed for that. */
const isNobodys = (entry: L2Entry, endpoints: ReadonlyMap<string, NetworkEndpoint>): boolean => {
  if (!isBound(entry)) return true;
  const endpoint = endpoints.get(entry.status.endpoint);
  return endpoint !== undefined && !isListed(entry, endpoint);
};

/** A status that is written again and again for nobody does not begin the time anew. */
const keyOf = (entry: L2Entry): string =>
  `${entry.metadata.uid} ${isBound(entry) ? 'bound' : entry.metadata.resourceVersion}`;

/** @param now monotonic, milliseconds */
export const createAbandonedClaims = (now: () => number): AbandonedClaims => {
  const standing = createLongStanding(now, { afterMs: ABANDONED_AFTER_MS, keyOf });
  return {
    observe({ isComplete, endpoints, fdbEntries, neighbors }) {
      if (!isComplete) return [];
      const known = new Map(endpoints.map((endpoint) => [endpointKey(endpoint), endpoint]));
      return standing.observe([...fdbEntries, ...neighbors].filter((entry) => isNobodys(entry, known)));
    },
    nextMs: standing.nextMs,
  };
};
