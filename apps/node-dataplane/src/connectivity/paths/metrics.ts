import type { Metrics } from '@unbounded/telemetry';
import type { PathCounts, PathReport } from './messages.ts';

export interface PathMetrics {
  moved(report: PathReport): void;
  paths(all: Iterable<PathReport>): void;
  measured(counts: PathCounts): void;
}

export const createPathMetrics = (metrics: Metrics): PathMetrics => {
  const peers = metrics.gauge({
    name: 'unbounded_wireguard_peer_paths',
    help: 'Paths to WireGuard peers that can use a relay, by path in use: direct or relay.',
    labels: ['path'],
  });
  const moves = metrics.counter({
    name: 'unbounded_path_moves_total',
    help: 'Changes of a path between direct and relay, by reason.',
    labels: ['from', 'to', 'reason'],
  });
  const sent = metrics.counter({
    name: 'unbounded_path_probes_sent_total',
    help: 'Probe requests and replies sent on direct paths.',
  });
  const received = metrics.counter({
    name: 'unbounded_path_probes_received_total',
    help: 'Authenticated probe requests and replies received on direct paths.',
  });
  const rejected = metrics.counter({
    name: 'unbounded_path_probes_rejected_total',
    help: 'Probe packets rejected, or not sent, by reason.',
    labels: ['reason'],
  });
  return {
    moved({ from, path, reason }) {
      if (from !== undefined && from !== path) moves.inc({ from, to: path, reason });
    },
    paths(all) {
      const counts = { direct: 0, relay: 0 };
      for (const { path } of all) counts[path]++;
      for (const path of ['direct', 'relay'] as const) peers.set({ path }, counts[path]);
    },
    measured(counts) {
      sent.inc(counts.sent);
      received.inc(counts.received);
      for (const [reason, count] of Object.entries(counts.rejected)) rejected.inc({ reason }, count);
    },
  };
};
