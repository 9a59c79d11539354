import { areas, type Dashboard, lines, quantiles, stat } from '../dashboard.ts';

const POD = '{pod=~"$pod"}';

export const relayDashboard: Dashboard = {
  uid: 'unbounded-relay',
  title: 'Unbounded / Relay',
  description: 'Do nodes reach the relay, does it deliver, and which paths need it?',
  variables: [
    { name: 'pod', label: 'Replica', series: 'unbounded_relay_connections', valuesOf: 'pod', isMultiple: true },
  ],
  rows: [
    {
      title: 'Do nodes reach it?',
      panels: [
        stat(
          {
            ...{ title: 'Connected clients', unit: 'short' },
            description: 'Connections with a registered key, over the selected replicas.',
          },
          `sum(unbounded_relay_connections${POD})`,
        ),
        stat(
          {
            ...{ title: 'Nodes without their relay', unit: 'short', bad: { from: 1 } },
            description: 'Nodes that have no TCP connection to a relay of theirs: check name, port and certificate.',
          },
          'count(max by (node) (unbounded_relay_client_relays{state="disconnected"}) > 0) or vector(0)',
        ),
        stat(
          {
            ...{ title: 'Allowed keys', unit: 'short' },
            description: 'Keys that may register; -1: there is no list, and any key is accepted.',
          },
          `min(unbounded_relay_allowed_keys${POD})`,
        ),
        stat(
          {
            ...{ title: 'Replicas with a stale list of keys', unit: 'short', bad: { from: 1 } },
            description: 'They cannot read the list, and refuse nodes that are new. Their logs name the error.',
          },
          `sum(unbounded_relay_allowed_keys_stale${POD})`,
        ),
        areas(
          {
            ...{ title: 'Clients of each replica', unit: 'short' },
            description:
              'Of the 20 replicas with most. One replica with all of them: the load balancer does not distribute.',
          },
          [`topk(20, sum by (pod) (unbounded_relay_connections${POD}))`, '{{pod}}'],
        ),
        areas(
          {
            ...{ title: 'Refused connections', unit: 'cps' },
            description: 'By limit. Strangers, or more nodes than the limits allow for (docs/relay.md).',
          },
          [`sum by (limit) (rate(unbounded_relay_refused_connections_total${POD}[$__rate_interval]))`, '{{limit}}'],
        ),
        areas(
          {
            ...{ title: 'Proofs of possession', unit: 'cps' },
            description: 'By result. Failed ones are clients that do not hold the key that they name.',
          },
          [`sum by (result) (rate(unbounded_relay_handshakes_total${POD}[$__rate_interval]))`, '{{result}}'],
        ),
        areas(
          {
            ...{ title: 'Closed connections', unit: 'cps' },
            description: 'By reason. Many at once at an update of the relay are usual: clients go to another replica.',
          },
          [`sum by (reason) (rate(unbounded_relay_closed_connections_total${POD}[$__rate_interval]))`, '{{reason}}'],
        ),
      ],
    },
    {
      title: 'Does it deliver?',
      panels: [
        lines(
          {
            ...{ title: 'Delivered', unit: 'Bps' },
            description: 'Bytes to clients, of the 20 replicas that deliver most.',
          },
          [`topk(20, sum by (pod) (rate(unbounded_relay_bytes_total${POD}[$__rate_interval])))`, '{{pod}}'],
        ),
        areas(
          {
            ...{ title: 'Dropped frames', unit: 'pps' },
            description: 'By reason: a slow client is its node’s network; a full relay needs another replica.',
          },
          [`sum by (reason) (rate(unbounded_relay_dropped_frames_total${POD}[$__rate_interval]))`, '{{reason}}'],
        ),
        quantiles(
          {
            ...{ title: 'Time in send queues', unit: 's' },
            description: 'Of packets for clients that do not read fast enough.',
          },
          'unbounded_relay_queue_age_seconds',
          POD,
        ),
        lines(
          {
            ...{ title: 'Bytes in send queues', unit: 'bytes' },
            description: 'Of the 20 replicas with most. Near the limit the relay pauses reading, then drops.',
          },
          [`topk(20, sum by (pod) (unbounded_relay_buffered_bytes${POD}))`, '{{pod}}'],
        ),
        lines(
          {
            ...{ title: 'Links to other replicas', unit: 'short' },
            description: 'Of the 20 replicas with fewest. Each should have a link to every other.',
          },
          [`bottomk(20, max by (pod) (unbounded_relay_links${POD}))`, '{{pod}}'],
        ),
      ],
    },
    {
      title: 'Which paths need it?',
      panels: [
        lines(
          {
            ...{ title: 'Nodes with most relayed paths', unit: 'short' },
            description: 'Ten nodes to whose peers UDP does not get through. All nodes of a site: its firewall.',
          },
          ['topk(10, sum by (node) (unbounded_wireguard_peer_paths{path="relay"}))', '{{node}}'],
        ),
        areas(
          {
            ...{ title: 'Paths that move', unit: 'cps' },
            description: 'Between direct and relay, by reason. Steady moves are a firewall that forgets or limits UDP.',
          },
          ['sum by (to, reason) (rate(unbounded_path_moves_total[$__rate_interval]))', 'to {{to}}: {{reason}}'],
        ),
        areas(
          {
            ...{ title: 'Packets that nodes drop before the relay', unit: 'pps' },
            description:
              'By reason. slowRelay: the TCP path is slower than the traffic; put replicas nearer to the sites.',
          },
          ['sum by (reason) (rate(unbounded_relay_client_dropped_total[$__rate_interval]))', '{{reason}}'],
        ),
      ],
    },
  ],
};
