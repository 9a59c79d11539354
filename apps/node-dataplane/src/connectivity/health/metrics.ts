import { PEER_STATES } from '@unbounded/health';
import type { Metrics } from '@unbounded/telemetry';
import type { Scheduled, Scheduling } from '../../thread/scheduling.ts';
import type { Measurements, PeerReport } from './messages.ts';

/** Seconds: from a neighbour in the rack to a satellite. */
const ROUND_TRIP_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

const SCHEDULINGS: readonly Scheduling[] = ['realtime', 'niceness', 'shared'];

export interface HealthMetrics {
  readonly scheduled: (scheduled: Scheduled) => void;
  changed(reports: readonly PeerReport[], all: Iterable<PeerReport>): void;
  measured(measurements: Measurements): void;
}

/** How the thread that probes gets a processor. */
const schedulingOf = (metrics: Metrics): HealthMetrics['scheduled'] => {
  const thread = metrics.gauge({
    name: 'unbounded_health_thread_scheduling',
    help: 'How the thread that probes gets a processor: realtime, by niceness among the threads of its control group, or shared with all.',
    labels: ['policy'],
  });
  return ({ scheduling }) => {
    for (const policy of SCHEDULINGS) thread.set({ policy }, policy === scheduling ? 1 : 0);
  };
};

const roundTripsOf = (metrics: Metrics) =>
  metrics.histogram({
    name: 'unbounded_health_rtt_seconds',
    help: 'Round-trip time of probes, measured by the node that sent the request.',
    buckets: ROUND_TRIP_BUCKETS,
  });

export const createHealthMetrics = (metrics: Metrics): HealthMetrics => {
  const peers = metrics.gauge({
    name: 'unbounded_health_peers',
    help: 'Probed peers, by address family and state.',
    labels: ['family', 'state'],
  });
  const transitions = metrics.counter({
    name: 'unbounded_health_transitions_total',
    help: 'State changes of probed peers, by previous and new state.',
    labels: ['from', 'to'],
  });
  const sent = metrics.counter({
    name: 'unbounded_health_probes_sent_total',
    help: 'Probe requests and replies sent.',
  });
  const received = metrics.counter({
    name: 'unbounded_health_probes_received_total',
    help: 'Authenticated probe requests and replies received.',
  });
  const echoesSent = metrics.counter({
    name: 'unbounded_health_echoes_sent_total',
    help: 'Echoes sent through gateways.',
  });
  const echoesReturned = metrics.counter({
    name: 'unbounded_health_echoes_returned_total',
    help: 'Authenticated echoes that gateways returned.',
  });
  const gateways = metrics.gauge({
    name: 'unbounded_health_echo_gateways',
    help: 'Gateways through which echoes are sent, by address family and whether the echoes return.',
    labels: ['family', 'returned'],
  });
  const rejected = metrics.counter({
    name: 'unbounded_health_probes_rejected_total',
    help: 'Probe packets rejected, or not sent, by reason.',
    labels: ['reason'],
  });
  const roundTrips = roundTripsOf(metrics);
  return {
    scheduled: schedulingOf(metrics),
    changed(reports, peersNow) {
      const all = [...peersNow];
      for (const { previous, state } of reports)
        if (previous !== undefined && previous !== state) transitions.inc({ from: previous, to: state });
      const counts = new Map<string, number>();
      for (const { family, state } of all) {
        const key = `${family} ${state}`;
        counts.set(key, (counts.get(key) ?? 0) + 1);
      }
      for (const family of [4, 6])
        for (const state of PEER_STATES)
          peers.set({ family: String(family), state }, counts.get(`${family} ${state}`) ?? 0);
      for (const family of [4, 6])
        for (const returned of [true, false])
          gateways.set(
            { family: String(family), returned: String(returned) },
            all.filter((peer) => peer.family === family && peer.forwards === returned).length,
          );
    },
    measured(measurements) {
      sent.inc(measurements.sent);
      received.inc(measurements.received);
      echoesSent.inc(measurements.echoesSent);
      echoesReturned.inc(measurements.echoesReturned);
      for (const [reason, count] of Object.entries(measurements.rejected)) rejected.inc({ reason }, count);
      for (const seconds of measurements.roundTrips) roundTrips.observe(seconds);
    },
  };
};
