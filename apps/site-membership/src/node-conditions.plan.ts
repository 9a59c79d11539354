import type { NewCondition, Node } from '@unbounded/kube';
import { listed } from '@unbounded/membership';

import type { NodeFinding } from './membership.plan.ts';

/** On a Node: whether everything that it states about itself is used. True is good, and absent says the same. */
export const NODE_CONDITION = 'UnboundedNodeAccepted';

export interface NodeConditionChange {
  readonly node: Node;
  readonly condition: NewCondition;
}

const conditionOf = ({ problems }: NodeFinding): NewCondition => ({
  type: NODE_CONDITION,
  status: 'False',
  reason: problems[0]!.reason,
  message: listed(
    problems.map(({ field, message }) => `${field}: ${message}`),
    '; ',
  ),
});

const accepted: NewCondition = {
  type: NODE_CONDITION,
  status: 'True',
  reason: 'Accepted',
  message: 'all facts of the Node are accepted',
};

/** The condition of every Node with a finding, and of those that had one: 5,000 good Nodes need no write. */
export const planNodeConditions = (
  nodes: readonly Node[],
  findings: readonly NodeFinding[],
): readonly NodeConditionChange[] => {
  const byNode = new Map(findings.map((finding) => [finding.node, finding]));
  return nodes.flatMap((node) => {
    const finding = byNode.get(node.metadata.name);
    if (finding) return [{ node, condition: conditionOf(finding) }];
    const hadOne = node.status?.conditions?.some(({ type }) => type === NODE_CONDITION) ?? false;
    return hadOne ? [{ node, condition: accepted }] : [];
  });
};
