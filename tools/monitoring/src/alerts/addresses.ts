import type { AlertGroup } from '../alert.ts';

const PREFIX = 'unbounded_net_controller';

/** Sites and what nodes get from them. Several replicas may know a Site; only the one that leads counts. */
export const addressAlerts: AlertGroup = {
  name: 'unbounded-addresses',
  alerts: [
    {
      name: 'UnboundedPodCIDRsExhausted',
      expr: `max by (site) (${PREFIX}_pod_cidr_waiting_nodes) > 0`,
      for: '5m',
      severity: 'critical',
      summary: '{{ $value | humanize }} nodes of the Site {{ $labels.site }} wait for pod CIDRs.',
      description:
        'An assignment of the Site {{ $labels.site }} has no free block: {{ $value | humanize }} nodes have no pod network.',
    },
    {
      name: 'UnboundedPodCIDRConflict',
      expr: `max(${PREFIX}_pod_cidr_conflicts) > 0`,
      for: '5m',
      severity: 'critical',
      summary: '{{ $value | humanize }} pairs of nodes have overlapping pod CIDRs.',
      description: 'The Events of the Nodes name both. The pods of one of them are not reached.',
    },
    {
      name: 'UnboundedLocatorsExhausted',
      expr: `max by (site) (${PREFIX}_l2_locator_waiting_nodes) > 0`,
      for: '5m',
      severity: 'warning',
      summary: '{{ $value | humanize }} nodes of the Site {{ $labels.site }} wait for a locator.',
      description:
        'The prefix of locators has no room for the Site {{ $labels.site }}: stretched LANs do not reach these nodes.',
    },
    {
      name: 'UnboundedNodesWithoutSite',
      expr: `max(${PREFIX}_nodes_without_site) > 0`,
      for: '15m',
      severity: 'warning',
      summary: '{{ $value | humanize }} nodes are in no Site.',
      description:
        'The InternalIPs of {{ $value | humanize }} nodes are in the nodeCidrs of no Site, so they are not in the network.',
    },
    {
      name: 'UnboundedSiteNodeCIDROverlap',
      expr: `max by (site) (${PREFIX}_site_node_cidr_overlaps) > 0`,
      for: '5m',
      severity: 'warning',
      summary: 'The nodeCidrs of the Site {{ $labels.site }} overlap those of an older Site.',
      description:
        'Nodes with an address in both belong to the older Site. Correct spec.nodeCidrs of {{ $labels.site }}.',
    },
    {
      name: 'UnboundedNodeFactsRejected',
      expr: `max by (reason) (${PREFIX}_node_problems) > 0`,
      for: '10m',
      severity: 'warning',
      summary: 'Facts of {{ $value | humanize }} nodes are rejected: {{ $labels.reason }}.',
      description: 'The condition UnboundedNodeAccepted of the Nodes names the rejected fact and what would be valid.',
    },
  ],
};
