import type { KubeObject } from '@unbounded/kube';
import { isBound, type L2ClusterSnapshot, type L2Entry } from '@unbounded/l2';

/**
 * An agent creates an entry, which claims its key, and then writes the status, which says whose it is. One that ends in between leaves an
 * entry that is nobody's, and an address that no pod gets. An agent claims within 20 seconds (ADD_WITHIN_MS of node-dataplane).
 */

const ABANDONED_AFTER_MS = 300_000;

export interface AbandonedClaims {
  /** Entries that have had no status, and no other change, for that long. Nothing, unless all lists are complete. */
  observe(snapshot: L2ClusterSnapshot): readonly L2Entry[];
  /** Until the next one may be abandoned; undefined: all have a status. */
  nextMs(): number | undefined;
}

const versionOf = ({ metadata: { uid, resourceVersion } }: KubeObject): string => `${uid} ${resourceVersion}`;

/**
 * How long is measured from where an entry was first seen so: its time of creation is by the clock of an API server, which may have been set
 * since, as may ours. A new leader measures anew.
 * @param now monotonic, milliseconds
 */
export const createAbandonedClaims = (now: () => number): AbandonedClaims => {
  let seenMs = new Map<string, number>();
  return {
    observe({ isComplete, fdbEntries, neighbors }) {
      if (!isComplete) return [];
      const unbound = [...fdbEntries, ...neighbors].filter((entry) => !isBound(entry));
      seenMs = new Map(unbound.map(versionOf).map((version) => [version, seenMs.get(version) ?? now()]));
      return unbound.filter((entry) => now() - seenMs.get(versionOf(entry))! >= ABANDONED_AFTER_MS);
    },
    nextMs() {
      const rest = [...seenMs.values()].map((ms) => ms + ABANDONED_AFTER_MS - now()).filter((ms) => ms > 0);
      return rest.length === 0 ? undefined : Math.min(...rest);
    },
  };
};
