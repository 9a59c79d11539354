import { egressAnnotations } from '@unbounded/crds';
import { containsAddress, formatPrefix, SHORTEST_BLOCK } from '@unbounded/ip';

import type { RuleAddress } from '../addresses/rule-address.ts';
import type { EgressProblem } from '../problem.ts';
import type { Rule } from '../rules/rule.ts';
import type { OwnerTrouble, Ownership } from './owners.plan.ts';
import { MOST_OF_NODE } from './room.ts';
import type { AttachedSubnet } from './subnets.ts';

const remedyOf = (trouble: OwnerTrouble, { pool }: RuleAddress, node: string | undefined): string => {
  const nodes = pool ? `nodes that nodeSelector of EgressIPPool ${pool.name} selects` : 'nodes';
  switch (trouble) {
    case 'NoCandidate':
      return `there are no ${nodes}: label a node, or change nodeSelector`;
    case 'OutsideSubnets':
      return `is outside of the networks of all ${nodes}: take an address of such a network, or a pool with announce None and a route to its owner`;
    case 'NoLiveCandidate':
      return `none of the ${nodes} that could own it answers: start the agent of one of them`;
    case 'NodesFull':
      return `each of the ${nodes} that could own it has ${MOST_OF_NODE} addresses of its family, the most of one node: add a node, or let rules have fewer addresses`;
    case 'OwnerSilent':
      return `its owner ${node} does not answer and may still hold it: restore it, delete its Node, or, when it is off, annotate the Node with ${egressAnnotations.fenced}`;
    case 'AwaitingRelease':
      return `node ${node} has not confirmed yet that it released it: wait, or, when it is off, annotate the Node with ${egressAnnotations.fenced}`;
    case 'AddressNotHeld':
      return `its owner ${node} has not taken it yet, and first asks on its network whether anybody has it: wait; if that lasts, the condition UnboundedEgress of the Node says why`;
  }
};

/** Networks that hold the address, and are too large for it. */
const ignoredText = ({ address }: RuleAddress, ignored: readonly AttachedSubnet[]): string => {
  const subnet = ignored.find(({ prefix }) => containsAddress(prefix, address));
  if (!subnet) return '';
  const { prefix, nodes } = subnet;
  return ` (node ${nodes[0]!.node} reports ${formatPrefix(prefix)}, which does not count: it is shorter than a /${SHORTEST_BLOCK[prefix.family]})`;
};

/** Why an address of the rule has no owner that answers. */
export const ownerProblem = (
  rule: Rule,
  address: RuleAddress,
  { trouble, blockedBy }: Ownership,
  ignored: readonly AttachedSubnet[],
): EgressProblem | undefined =>
  trouble && {
    condition: 'OwnersElected',
    reason: trouble,
    field: `${rule.path}.${rule.source.field}`,
    value: address.text,
    remedy: remedyOf(trouble, address, blockedBy) + (trouble === 'OutsideSubnets' ? ignoredText(address, ignored) : ''),
  };
