import { relayTallies, type RelayTallies } from '@unbounded/keeper-protocol';
import type { Metrics } from '@unbounded/telemetry';

/** Metrics of the relay as the node sees it. Its proxies are a process of node-keeper's, and count in a file. */

/** Undefined: nothing was counted yet, or another version of the proxies counts. */
const readTallies = (file: string): RelayTallies | undefined => {
  try {
    return relayTallies.read(file);
  } catch {
    return undefined;
  }
};

export interface RelayMetricsOptions {
  readonly talliesFile: string;
  readonly relays: () => { readonly connected: readonly string[]; readonly away: readonly string[] };
}

export const createRelayMetrics = (metrics: Metrics, { talliesFile, relays }: RelayMetricsOptions): void => {
  const connected = metrics.gauge({
    name: 'unbounded_relay_client_relays',
    help: 'Relays that this node uses, by connection state: connected or disconnected.',
    labels: ['state'],
  });
  const frames = metrics.counter({
    name: 'unbounded_relay_client_frames_total',
    help: 'WireGuard packets queued for relays (some are dropped later, as slowRelay), or received from them.',
    labels: ['direction'],
  });
  const bytes = metrics.counter({
    name: 'unbounded_relay_client_bytes_total',
    help: 'Bytes of these packets, sent or received, with 37 bytes of framing for each.',
    labels: ['direction'],
  });
  const dropped = metrics.counter({
    name: 'unbounded_relay_client_dropped_total',
    help: 'WireGuard packets to or from a relay that were dropped, by reason.',
    labels: ['reason'],
  });
  const connections = metrics.counter({
    name: 'unbounded_relay_client_connections_total',
    help: 'Connections established to relays.',
  });
  const rebinds = metrics.counter({
    name: 'unbounded_relay_client_rebinds_total',
    help: 'Sockets to WireGuard that were reopened after an error.',
  });
  const all = [frames, bytes, dropped, connections, rebinds];
  metrics.onRender(() => {
    const now = relays();
    connected.set({ state: 'connected' }, now.connected.length);
    connected.set({ state: 'disconnected' }, now.away.length);
    for (const counter of all) counter.reset(); // these are sums of somebody else's
    const tallies = readTallies(talliesFile);
    if (!tallies) return;
    for (const [direction, count] of Object.entries(tallies.frames)) frames.inc({ direction }, count);
    for (const [direction, count] of Object.entries(tallies.bytes)) bytes.inc({ direction }, count);
    for (const [reason, count] of Object.entries(tallies.dropped)) dropped.inc({ reason }, count);
    connections.inc(tallies.connections);
    rebinds.inc(tallies.rebinds);
  });
};
