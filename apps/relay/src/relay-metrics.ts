import type { Metrics } from '@unbounded/telemetry';

import type { RelayState } from './relay.ts';

/** Seconds that packets waited for a client that did not read fast enough. */
const AGE_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/**
 * Carries the counts of the forwarding path over to Prometheus: `update` is called once a second, so that a packet costs an
 * addition and no more.
 */
export const relayMetrics = (metrics: Metrics) => {
  const count = <L extends string = never>(name: string, help: string, labels: readonly L[] = []) =>
    metrics.counter({ name: `unbounded_relay_${name}`, help, labels });
  const gauge = (name: string, help: string) => metrics.gauge({ name: `unbounded_relay_${name}`, help });
  const counters = {
    frames: count('frames_total', 'Data frames delivered to clients.'),
    bytes: count('bytes_total', 'Bytes of Data frames delivered to clients, headers included.'),
    linkFrames: count('link_frames_total', 'Data frames forwarded to other replicas.'),
    dropped: count('dropped_frames_total', 'Data frames dropped, by reason.', ['reason']),
    ignored: count('ignored_frames_total', 'Frames ignored: of an unknown type, or unexpected in their state.'),
    registrations: count('registrations_total', 'Registrations of keys, by proof of possession.', ['proof']),
    handshakes: count('handshakes_total', 'Proofs of possession, by result.', ['result']),
    closed: count('closed_connections_total', 'Connections closed, by reason.', ['reason']),
    refused: count('refused_connections_total', 'Connections refused, by limit.', ['limit']),
    held: count('read_pauses_total', 'Backpressure: pauses in reading from a client, by reason.', ['reason']),
  };
  const gauges = {
    connections: gauge('connections', 'Client connections with a registered key.'),
    pending: gauge('pending_connections', 'Client connections without a registered key.'),
    allowedKeys: gauge('allowed_keys', 'Keys in the list of allowed keys; -1: no list, any key is accepted.'),
    listStale: gauge(
      'allowed_keys_stale',
      '1 while the list of allowed keys cannot be read and the previous one applies, else 0.',
    ),
    registered: gauge('registered_keys', 'Keys registered at this replica.'),
    heldBytes: gauge('buffered_bytes', 'Bytes in send queues and unfinished writes.'),
    links: gauge('links', 'Other replicas with an established link.'),
  };
  const age = metrics.histogram({
    name: 'unbounded_relay_queue_age_seconds',
    help: 'Time that packets waited in the send queue of a slow client.',
    buckets: AGE_BUCKETS,
  });
  const before = new Map<string, number>();
  const grown = (key: string, now: number): number => {
    const growth = now - (before.get(key) ?? 0);
    before.set(key, now);
    return growth;
  };
  const each = (group: string, values: Readonly<Record<string, number>>, add: (label: string, by: number) => void) => {
    for (const [label, value] of Object.entries(values)) add(label, grown(`${group}.${label}`, value));
  };
  return {
    queueAge: (ms: number): void => age.observe(ms / 1000),
    update: (state: RelayState): void => {
      const { tallies, connections, registered, heldBytes, links } = state;
      const { frames, bytes, linkFrames, ignored } = tallies;
      each('', { frames, bytes, linkFrames, ignored }, (name, by) =>
        counters[name as 'frames' | 'bytes' | 'linkFrames' | 'ignored'].inc(by),
      );
      each('dropped', tallies.dropped, (reason, by) => counters.dropped.inc({ reason }, by));
      each('registrations', tallies.registrations, (proof, by) => counters.registrations.inc({ proof }, by));
      each('handshakes', tallies.handshakes, (result, by) => counters.handshakes.inc({ result }, by));
      each('closed', tallies.closed, (reason, by) => counters.closed.inc({ reason }, by));
      each('refused', tallies.refused, (limit, by) => counters.refused.inc({ limit }, by));
      each('held', tallies.held, (reason, by) => counters.held.inc({ reason }, by));
      gauges.connections.set(connections);
      gauges.pending.set(state.pending);
      gauges.allowedKeys.set(state.allowedKeys ?? -1);
      gauges.listStale.set(state.isListStale ? 1 : 0);
      gauges.registered.set(registered);
      gauges.heldBytes.set(heldBytes);
      gauges.links.set(links);
    },
  };
};
