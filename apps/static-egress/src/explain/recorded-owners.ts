import type { EgressObjects } from '../cluster/egress-objects.ts';

/**
 * Nodes that the controller has named as owners, by UID. One look at the cluster shows no heartbeat to change, so it cannot tell which
 * agents are alive; but the plan in which these are, and no others, is the one that the controller has written.
 */
export const recordedOwners = ({
  rules,
  clusterRules,
  nodes,
}: Pick<EgressObjects, 'rules' | 'clusterRules' | 'nodes'>): ReadonlySet<string> => {
  const assigned = [...rules, ...clusterRules].flatMap(({ status }) => status?.addresses ?? []);
  const names = new Set(assigned.flatMap(({ node }) => node ?? []));
  return new Set(nodes.flatMap(({ metadata }) => (names.has(metadata.name) ? (metadata.uid ?? []) : [])));
};
