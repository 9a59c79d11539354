import { areas, type Dashboard, lines, quantiles, stat } from '../dashboard.ts';

const PREFIX = 'unbounded_net_controller_gateway_pool';
const POOL = '{pool=~"$pool"}';

export const gatewayPoolDashboard: Dashboard = {
  uid: 'unbounded-gateway-pool',
  title: 'Unbounded / Gateway pool',
  description: 'Does each GatewayPool carry traffic, and do its gateways forward?',
  variables: [{ name: 'pool', label: 'Gateway pool', series: `${PREFIX}_nodes`, valuesOf: 'pool', isMultiple: true }],
  rows: [
    {
      title: 'Does each pool reach its sites?',
      panels: [
        stat(
          {
            ...{ title: 'Gateways', unit: 'short', bad: { below: 1 } },
            description: 'Gateways of the selected pools. With one in a pool, its loss cuts off what the pool serves.',
          },
          `sum(max by (pool) (${PREFIX}_nodes${POOL}))`,
        ),
        stat(
          {
            ...{ title: 'Pools with fewer than two gateways', unit: 'short', bad: { from: 1 } },
            description: 'They have no gateway to spare.',
          },
          `count(max by (pool) (${PREFIX}_nodes${POOL}) < 2) or vector(0)`,
        ),
        stat(
          {
            ...{ title: 'Pools that reach no site', unit: 'short', bad: { from: 1 } },
            description: 'Such a pool carries nothing: look at its peerings and at the health of its gateways.',
          },
          `count(max by (pool) (${PREFIX}_reachable_sites${POOL}) == 0) or vector(0)`,
        ),
        stat(
          {
            ...{ title: 'Nodes that cannot be gateways', unit: 'short', bad: { from: 1 } },
            description: 'A pool selects them and they lack something: the conditions of the GatewayPool name it.',
          },
          `sum(max by (pool) (${PREFIX}_ineligible_nodes${POOL}))`,
        ),
        lines(
          {
            ...{ title: 'Gateways of each pool', unit: 'short' },
            description: 'Of the 20 largest pools. A gateway that is dead stays in its pool until its Node is deleted.',
          },
          [`topk(20, max by (pool) (${PREFIX}_nodes${POOL}))`, '{{pool}}'],
        ),
        lines(
          {
            ...{ title: 'Reachable sites of each pool', unit: 'short' },
            description:
              'Of the 20 pools that reach fewest. A fall: a peering was changed, or the gateways that led there are away.',
          },
          [`bottomk(20, max by (pool) (${PREFIX}_reachable_sites${POOL}))`, '{{pool}}'],
        ),
      ],
    },
    {
      title: 'Do gateways forward?',
      panels: [
        areas(
          {
            ...{ title: 'Gateways by whether echoes return', unit: 'short' },
            description:
              'Over all nodes that send echoes through them. false: dead, cut off, or a firewall drops what it should forward.',
          },
          ['sum by (returned, family) (unbounded_health_echo_gateways)', 'IPv{{family}} returned: {{returned}}'],
        ),
        lines(
          {
            ...{ title: 'Lost echoes', unit: 'percentunit' },
            description:
              'Of all echoes through gateways. Above 1 % for long: a path loses packets, or a gateway is at its limit.',
          },
          [
            '1 - sum(rate(unbounded_health_echoes_returned_total[$__rate_interval])) / sum(rate(unbounded_health_echoes_sent_total[$__rate_interval]))',
            'lost',
          ],
        ),
        lines(
          {
            ...{ title: 'Nodes that lose most echoes', unit: 'percentunit' },
            description:
              'Ten nodes. All nodes of a site: its way to the gateways. One node: its own firewall or device.',
          },
          [
            'topk(10, 1 - sum by (node) (rate(unbounded_health_echoes_returned_total[$__rate_interval])) / sum by (node) (rate(unbounded_health_echoes_sent_total[$__rate_interval])))',
            '{{node}}',
          ],
        ),
        lines(
          {
            ...{ title: 'Nodes whose firewalls drop the overlay', unit: 'short' },
            description:
              'The chain that echoes were traced to. The condition of the Node has the command that lets them pass.',
          },
          [
            'topk(10, max by (node, family, table, chain) (unbounded_forwarding_blocked) > 0)',
            '{{node}} IPv{{family}} {{table}} {{chain}}',
          ],
        ),
      ],
    },
    {
      title: 'Which peers do not answer?',
      panels: [
        lines(
          {
            ...{ title: 'Nodes with most unhealthy peers', unit: 'short' },
            description:
              'Ten nodes. A gateway with many: its own network. Many nodes with one each: the gateway that they share.',
          },
          ['topk(10, sum by (node) (unbounded_health_peers{state="Unhealthy"}))', '{{node}}'],
        ),
        quantiles(
          {
            ...{ title: 'Round-trip time of probes', unit: 's' },
            description: 'Over all nodes. A path by a relay, or by the gateway of another pool, is slower.',
          },
          'unbounded_health_rtt_seconds',
        ),
        areas(
          {
            ...{ title: 'Rejected probes', unit: 'pps' },
            description: 'By reason: not genuine, or of a version that is too old.',
          },
          ['sum by (reason) (rate(unbounded_health_probes_rejected_total[$__rate_interval]))', '{{reason}}'],
        ),
      ],
    },
  ],
};
