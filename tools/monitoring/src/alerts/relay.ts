import type { AlertGroup } from '../alert.ts';

/** The TCP relay, as itself and as its nodes see it. */
export const relayAlerts: AlertGroup = {
  name: 'unbounded-relay',
  alerts: [
    {
      name: 'UnboundedRelayDisconnected',
      expr: 'max by (node) (unbounded_relay_client_relays{state="disconnected"}) > 0',
      for: '5m',
      severity: 'warning',
      summary: '{{ $labels.node }} does not reach a relay.',
      description:
        '{{ $labels.node }} has had no TCP connection to {{ $value | humanize }} of its relays for 5 minutes. Paths that need the relay carry nothing.',
    },
    {
      name: 'UnboundedRelayDroppingFrames',
      expr: 'sum by (reason) (rate(unbounded_relay_dropped_frames_total[5m])) > 1',
      for: '10m',
      severity: 'warning',
      summary: 'The relay drops frames: {{ $labels.reason }}.',
      description:
        'The relay has dropped {{ $value | humanize }} frames a second for 10 minutes, reason {{ $labels.reason }}.',
    },
    {
      name: 'UnboundedRelayRefusingConnections',
      expr: 'sum by (limit) (increase(unbounded_relay_refused_connections_total[5m])) > 10',
      for: '10m',
      severity: 'warning',
      summary: 'The relay refuses connections by the limit {{ $labels.limit }}.',
      description:
        '{{ $value | humanize }} connections were refused within 5 minutes: strangers, or more nodes than the limits allow for.',
    },
    {
      name: 'UnboundedRelayKeysStale',
      expr: 'max by (pod) (unbounded_relay_allowed_keys_stale) == 1',
      for: '10m',
      severity: 'warning',
      summary: 'The relay {{ $labels.pod }} cannot read its list of allowed keys.',
      description:
        'The former list applies: nodes that are new are refused. The log of {{ $labels.pod }} names the error.',
    },
  ],
};
