import type { Metrics } from '@unbounded/telemetry';
import type { DeviceState } from '@unbounded/wireguard';

/** Sessions of WireGuard at this node, as of the last pass. */

/** Reject-After-Time of WireGuard: without a handshake for so long a session carries nothing. Peers are probed, so none is idle. */
const SESSION_ENDS_MS = 180_000;

type Handshake = 'recent' | 'old' | 'never';

/** @param states by interface */
export const watchSessions = (
  metrics: Metrics,
  states: () => ReadonlyMap<string, DeviceState>,
  now: () => number = Date.now,
): Disposable => {
  const peers = metrics.gauge({
    name: 'unbounded_wireguard_peers',
    help: 'WireGuard peers of this node, by their latest handshake: recent (a session is in force), old (more than 180 s ago) or never.',
    labels: ['handshake'],
  });
  const oldest = metrics.gauge({
    name: 'unbounded_wireguard_oldest_handshake_age_seconds',
    help: 'Age of the latest handshake of that peer of a WireGuard interface for which it is longest ago; peers without one do not count.',
    labels: ['device'],
  });
  return metrics.onRender(() => {
    const counts: Record<Handshake, number> = { recent: 0, old: 0, never: 0 };
    oldest.reset();
    for (const [device, state] of states()) {
      // A clock that was set back makes no age negative.
      const agesMs = state.peers.flatMap(({ latestHandshakeMs: at }) =>
        at === undefined ? [] : [Math.max(0, now() - at)],
      );
      counts.never += state.peers.length - agesMs.length;
      for (const age of agesMs) counts[age > SESSION_ENDS_MS ? 'old' : 'recent']++;
      if (agesMs.length > 0) oldest.set({ device }, Math.max(...agesMs) / 1000);
    }
    for (const [handshake, count] of Object.entries(counts)) peers.set({ handshake }, count);
  });
};
