import { areas, type Dashboard, lines, quantiles, stat } from '../dashboard.ts';

const PREFIX = 'unbounded_net_controller_egress';
const ADDRESS = 'address=~"$address"';

export const egressDashboard: Dashboard = {
  uid: 'unbounded-egress',
  title: 'Unbounded / Egress',
  description: 'Can pods leave by their fixed addresses, and is one of these near its limit?',
  variables: [
    {
      ...{ name: 'address', label: 'Egress address', series: 'unbounded_egress_address_held' },
      ...{ valuesOf: 'address', isMultiple: true },
    },
  ],
  rows: [
    {
      title: 'Can pods leave?',
      panels: [
        stat(
          {
            ...{ title: 'Addresses without owner', unit: 'short', bad: { from: 1 } },
            description: 'Pods with such an address reach nothing: the condition of the rule says which node to mend.',
          },
          `max(${PREFIX}_addresses{state="unowned"}) or vector(0)`,
        ),
        stat(
          {
            ...{ title: 'Addresses whose owner is silent', unit: 'short', bad: { from: 1 } },
            description: 'Nobody takes an address while its former owner may use it: mend that node, or give it up.',
          },
          `max(${PREFIX}_addresses{state="silent"}) or vector(0)`,
        ),
        stat(
          {
            ...{ title: 'Rules that are not ready', unit: 'short', bad: { from: 1 } },
            description: 'kubectl get staticegressips,clusterstaticegressips -A shows which.',
          },
          `max(${PREFIX}_rules{ready="false"}) or vector(0)`,
        ),
        stat(
          {
            ...{ title: 'Pods with a rule', unit: 'short' },
            description: 'Pods that leave by a rule.',
          },
          `max(${PREFIX}_pods)`,
        ),
        areas(
          {
            ...{ title: 'Addresses by state', unit: 'short' },
            description: 'taking and releasing last for seconds when an address moves; unowned and silent are faults.',
          },
          [`max by (state) (${PREFIX}_addresses)`, '{{state}}'],
        ),
        areas(
          {
            ...{ title: 'False conditions of rules and pools', unit: 'short' },
            description: 'By reason. The condition names field, value and remedy.',
          },
          [`max by (reason) (${PREFIX}_problems)`, '{{reason}}'],
        ),
        lines(
          {
            ...{ title: 'Nodes that can own addresses', unit: 'short' },
            description:
              'Ready nodes whose agents send heartbeats. A fall: their agents are away, and their addresses move.',
          },
          [`max(${PREFIX}_live_agents)`, 'nodes'],
        ),
        lines(
          {
            ...{ title: 'Given and not held', unit: 'short' },
            description:
              'Ten addresses that a node was given and may not send with yet. For more than a minute it is a fault.',
          },
          [
            `topk(10, min by (node, address) (unbounded_egress_address_held{${ADDRESS}}) == 0)`,
            '{{address}} on {{node}}',
          ],
        ),
      ],
    },
    {
      title: 'Is an address near its limit?',
      panels: [
        lines(
          {
            ...{ title: 'Ports in use to one destination', unit: 'percentunit' },
            description:
              'Ten addresses, each with the destination that uses most. Above 80 %: give the rule another address.',
          },
          [
            `topk(10, max by (address, node) (unbounded_egress_ports_used_ratio{${ADDRESS}}))`,
            '{{address}} on {{node}}',
          ],
        ),
        lines(
          {
            ...{ title: 'Traffic of rules', unit: 'Bps' },
            description: 'Ten rules with most traffic, both directions.',
          },
          [
            `topk(10, sum by (rule, direction) (rate(unbounded_egress_rule_bytes_total{${ADDRESS}}[$__rate_interval])))`,
            '{{rule}} {{direction}}',
          ],
        ),
        lines(
          {
            ...{ title: 'Packets of addresses', unit: 'pps' },
            description:
              'Ten addresses with most packets. Packets out without any in: nothing outside answers the address.',
          },
          [
            `topk(10, sum by (address, direction) (rate(unbounded_egress_rule_packets_total{${ADDRESS}}[$__rate_interval])))`,
            '{{address}} {{direction}}',
          ],
        ),
      ],
    },
    {
      title: 'Is the plan applied?',
      panels: [
        lines(
          {
            ...{ title: 'EgressNodeSlices', unit: 'short' },
            description: 'Of the last plan, and those that the API server refuses: Events WriteRefused say why.',
          },
          [`max(${PREFIX}_slices)`, 'planned'],
          [`max(${PREFIX}_refused_slices)`, 'refused'],
        ),
        lines(
          {
            ...{ title: 'Writes of EgressNodeSlices', unit: 'wps' },
            description: 'None at rest. Steady writes: addresses move again and again.',
          },
          [`sum(rate(${PREFIX}_slice_writes_total[$__rate_interval]))`, 'writes'],
        ),
        quantiles(
          {
            ...{ title: 'Duration of a plan', unit: 's' },
            description: 'Seconds are late for a failover: give the controller more processor time.',
          },
          `${PREFIX}_plan_duration_seconds`,
        ),
      ],
    },
  ],
};
