import { areas, type Dashboard, lines, stat } from '../dashboard.ts';
import { OUR_JOBS } from '../jobs.ts';

const PREFIX = 'unbounded_net_controller';
const SITE = '{site=~"$site"}';

export const siteDashboard: Dashboard = {
  uid: 'unbounded-site',
  title: 'Unbounded / Site',
  description: 'Do all nodes belong to a Site, and do they get addresses?',
  variables: [{ name: 'site', label: 'Site', series: `${PREFIX}_site_nodes`, valuesOf: 'site', isMultiple: true }],
  rows: [
    {
      title: 'Are all nodes in a Site?',
      panels: [
        stat(
          {
            ...{ title: 'Nodes without a Site', unit: 'short', bad: { from: 1 } },
            description: 'Their InternalIPs are in the nodeCidrs of no Site: add their block to one.',
          },
          `max(${PREFIX}_nodes_without_site)`,
        ),
        stat(
          {
            ...{ title: 'Nodes with a rejected fact', unit: 'short', bad: { from: 1 } },
            description: 'The condition UnboundedNodeAccepted of the Nodes names the fact and what would be valid.',
          },
          `sum(max by (reason) (${PREFIX}_node_problems)) or vector(0)`,
        ),
        stat(
          {
            ...{ title: 'Nodes that change too often', unit: 'short', bad: { from: 1 } },
            description:
              'Their changes are taken over late. Their Events say what changes; it may be a compromised node.',
          },
          `max(${PREFIX}_damped_nodes)`,
        ),
        stat(
          {
            ...{ title: 'Overlaps of nodeCidrs', unit: 'short', bad: { from: 1 } },
            description:
              'Older Sites that claim addresses of the selected ones. Correct spec.nodeCidrs of the younger Site.',
          },
          `sum(max by (site) (${PREFIX}_site_node_cidr_overlaps${SITE}))`,
        ),
        lines(
          {
            ...{ title: 'Nodes', unit: 'short' },
            description:
              'Of the 20 largest of the selected Sites, without gateways. A fall: nodes were deleted, or their addresses changed.',
          },
          [`topk(20, max by (site) (${PREFIX}_site_nodes${SITE}))`, '{{site}}'],
        ),
        areas(
          {
            ...{ title: 'Rejected facts', unit: 'short' },
            description: 'Nodes by the reason for which a fact of theirs is rejected.',
          },
          [`max by (reason) (${PREFIX}_node_problems)`, '{{reason}}'],
        ),
      ],
    },
    {
      title: 'Is there room for more nodes?',
      panels: [
        lines(
          {
            ...{ title: 'Nodes that wait for pod CIDRs', unit: 'short' },
            description:
              'No block of their Site is free, so they have no pod network: add a block to podCidrAssignments.',
          },
          [`topk(20, max by (site) (${PREFIX}_pod_cidr_waiting_nodes${SITE}))`, '{{site}}'],
        ),
        lines(
          {
            ...{ title: 'Exhaustions of pod CIDRs', unit: 'short' },
            description: 'Times within an hour that an assignment ran out of free blocks.',
          },
          [`topk(20, sum by (site) (increase(${PREFIX}_pod_cidr_exhaustion_total${SITE}[1h])))`, '{{site}}'],
        ),
        lines(
          {
            ...{ title: 'Nodes that were given addresses', unit: 'short' },
            description: 'Within an hour, in all Sites: pod CIDRs, and locators of stretched LANs.',
          },
          [`sum(increase(${PREFIX}_pod_cidr_allocations_total[1h]))`, 'pod CIDRs'],
          [`sum(increase(${PREFIX}_l2_locator_allocations_total[1h]))`, 'locators'],
        ),
        lines(
          {
            ...{ title: 'Conflicts of pod CIDRs', unit: 'short' },
            description:
              'Pairs of nodes with the same pod addresses: Events of the Nodes name both. Remove one and let it join anew.',
          },
          [`max(${PREFIX}_pod_cidr_conflicts)`, 'pairs of nodes'],
        ),
        lines(
          {
            ...{ title: 'Nodes that wait for a locator', unit: 'short' },
            description: 'The prefix of locators has no room: stretched LANs do not reach these nodes.',
          },
          [`topk(20, max by (site) (${PREFIX}_l2_locator_waiting_nodes${SITE}))`, '{{site}}'],
        ),
      ],
    },
    {
      title: 'Does the API server take what we write?',
      panels: [
        lines(
          {
            ...{ title: 'SiteNodeSlices', unit: 'short' },
            description: 'Slices of the 20 Sites with most; each holds a part of the nodes of its Site.',
          },
          [`topk(20, max by (site) (${PREFIX}_site_node_slices${SITE}))`, '{{site}}'],
        ),
        lines(
          {
            ...{ title: 'Reconciliations that failed', unit: 'ops' },
            description:
              'Of site-membership and cidr-allocator. Steady ones: their logs say why, often rights or an older kind.',
          },
          [
            `sum by (controller) (rate(controller_runtime_reconcile_total{${OUR_JOBS},job=~".+-(site-membership|cidr-allocator)",result="error"}[$__rate_interval]))`,
            '{{controller}}',
          ],
        ),
      ],
    },
  ],
};
