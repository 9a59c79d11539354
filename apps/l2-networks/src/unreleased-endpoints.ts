import type { NetworkEndpoint } from '@unbounded/crds';
import { isPodElsewhere, isPodGone, type L2ClusterSnapshot, podKey, podsByKey } from '@unbounded/l2';
import { createLongStanding } from './long-standing.ts';

/**
 * Endpoints that are being deleted and keep their finalizer, while their Pod is gone. An agent takes it off within a pass; one that does not
 * for ten minutes keeps a name, a namespace and a Network from their end. What is left on its node reaches nobody: the entries are gone, and
 * other nodes take no frame that no entry allows.
 */

const UNRELEASED_AFTER_MS = 600_000;

export interface UnreleasedEndpoints {
  /** Nothing, unless all lists are complete. */
  readonly observe: (snapshot: L2ClusterSnapshot) => readonly NetworkEndpoint[];
  /** Until the next one may be released; undefined: none is waited for. */
  readonly nextMs: () => number | undefined;
}

/** @param now monotonic, milliseconds */
export const createUnreleasedEndpoints = (now: () => number): UnreleasedEndpoints => {
  const standing = createLongStanding(now, {
    afterMs: UNRELEASED_AFTER_MS,
    keyOf: ({ metadata }: NetworkEndpoint) => metadata.uid ?? '',
  });
  return {
    observe({ isComplete, endpoints, pods }) {
      if (!isComplete) return [];
      const deleted = endpoints.filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
      if (deleted.length === 0) return standing.observe([]);
      const byKey = podsByKey(pods);
      return standing.observe(
        deleted.filter((endpoint) => {
          const pod = byKey.get(podKey(endpoint));
          return isPodGone(endpoint, pod) || isPodElsewhere(endpoint, pod);
        }),
      );
    },
    nextMs: standing.nextMs,
  };
};
