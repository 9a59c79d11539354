import type { Metrics } from '@unbounded/telemetry';
import type { PathCounts, PathReport } from './messages.ts';

export interface PathMetrics {
  moved(report: PathReport): void;
  paths(all: Iterable<PathReport>): void;
  measured(counts: PathCounts): void;
}

export const createPathMetrics = (metrics: Metrics): PathMetrics => {
  const peers = metrics.gauge({
    name: 'unbounded_path_peers',
    help: 'WireGuard peers that have a relay, by the path that is sent by: direct or relay.',
    labels: ['path'],
  });
  const moves = metrics.counter({
    name: 'unbounded_path_moves_total',
    help: 'Changes of a path between direct and relay, with the reason.',
    labels: ['from', 'to', 'reason'],
  });
  const sent = metrics.counter({
    name: 'unbounded_path_probes_sent_total',
    help: 'Probes of direct paths, and replies.',
  });
  const received = metrics.counter({
    name: 'unbounded_path_probes_received_total',
    help: 'Probes of direct paths, and replies, that were authentic and counted.',
  });
  const rejected = metrics.counter({
    name: 'unbounded_path_probes_rejected_total',
    help: 'Packets that changed nothing, or could not be sent, by reason.',
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
