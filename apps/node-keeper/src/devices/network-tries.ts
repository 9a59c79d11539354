/** When the network of a pod may be tried again that could not be set up, or taken away. */

const [FIRST_REST_MS, LONGEST_REST_MS] = [500, 30_000];

export interface NetworkTries {
  /** Another network is due at once. `nowMs` never goes back. */
  isDue(podUID: string, network: string, nowMs: number): boolean;
  failed(podUID: string, network: string, nowMs: number): void;
  forget(podUID: string): void;
}

export const createNetworkTries = (): NetworkTries => {
  const failures = new Map<string, { readonly network: string; readonly restMs: number; readonly untilMs: number }>();
  return {
    isDue(podUID, network, nowMs) {
      const failure = failures.get(podUID);
      return failure?.network !== network || nowMs >= failure.untilMs;
    },
    failed(podUID, network, nowMs) {
      const before = failures.get(podUID);
      const restMs = before?.network === network ? Math.min(before.restMs * 2, LONGEST_REST_MS) : FIRST_REST_MS;
      failures.set(podUID, { network, restMs, untilMs: nowMs + restMs });
    },
    forget: (podUID) => void failures.delete(podUID),
  };
};
