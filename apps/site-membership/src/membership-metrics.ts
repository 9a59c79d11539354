import type { Metrics } from '@unbounded/telemetry';

import type { MembershipPlan } from './membership.plan.ts';

export interface MembershipMetrics {
  state(plan: MembershipPlan, dampedCount: number): void;
}

const PREFIX = 'unbounded_net_controller_site';

export const membershipMetrics = (metrics: Metrics): MembershipMetrics => {
  const labels = ['site'] as const;
  const nodes = metrics.gauge({ name: `${PREFIX}_nodes`, help: 'Nodes of a Site that are not gateways.', labels });
  const slices = metrics.gauge({ name: `${PREFIX}_node_slices`, help: 'SiteNodeSlices of a Site.', labels });
  const overlaps = metrics.gauge({
    name: `${PREFIX}_node_cidr_overlaps`,
    help: 'Older Sites whose nodeCidrs overlap those of a Site.',
    labels,
  });
  const homeless = metrics.gauge({
    name: 'unbounded_net_controller_nodes_without_site',
    help: 'Nodes without an InternalIP in the nodeCidrs of any Site.',
  });
  const problems = metrics.gauge({
    name: 'unbounded_net_controller_node_problems',
    help: 'Nodes with a rejected fact, by reason; such a Node has the condition UnboundedNodeAccepted=False.',
    labels: ['reason'],
  });
  const damped = metrics.gauge({
    name: 'unbounded_net_controller_damped_nodes',
    help: 'Nodes that change too often: their changes are taken over late, at most one a minute.',
  });
  return {
    state: ({ sites, homelessCount, findings }, dampedCount) => {
      damped.set(dampedCount);
      homeless.set(homelessCount);
      problems.reset();
      for (const finding of findings) {
        for (const reason of new Set(finding.problems.map((problem) => problem.reason))) problems.inc({ reason });
      }
      for (const gauge of [nodes, slices, overlaps]) gauge.reset();
      for (const plan of sites) {
        const site = plan.site.metadata.name;
        nodes.set({ site }, plan.nodeCount);
        slices.set({ site }, plan.slices.length);
        overlaps.set({ site }, plan.overlaps.length);
      }
    },
  };
};
