import type { Condition } from '@unbounded/crds';

import { type EgressProblem, problemText } from '../problem.ts';

/** A condition without what its writer adds: the times and the observed generation. */
export type Statement = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

/** Problems that a message tells; the rest is counted. */
const TOLD_PROBLEMS = 10;
/** Longest message of a condition. */
const LONGEST_MESSAGE = 32_768;

const MET: Readonly<Record<EgressProblem['condition'], string>> = {
  Accepted: 'all rules are valid and in force',
  AddressesAssigned: 'every rule has its addresses',
  OwnersElected: 'every address has an owner that answers',
  PodsCovered: 'every selected pod is covered',
};

const messageOf = (problems: readonly EgressProblem[]): string => {
  const told = problems.slice(0, TOLD_PROBLEMS).map(problemText).join('; ');
  const rest = problems.length - TOLD_PROBLEMS;
  return (rest > 0 ? `${told}; and ${rest} more` : told).slice(0, LONGEST_MESSAGE);
};

const statementOf = (
  type: EgressProblem['condition'],
  problems: readonly EgressProblem[],
  met = MET[type],
): Statement => {
  const own = problems.filter(({ condition }) => condition === type);
  return own.length === 0
    ? { type, status: 'True', reason: type, message: met }
    : { type, status: 'False', reason: own[0]!.reason, message: messageOf(own) };
};

/** The conditions of a StaticEgressIP or ClusterStaticEgressIP; Ready sums up the others. */
export const ruleConditions = (problems: readonly EgressProblem[]): readonly Statement[] => {
  const types = ['Accepted', 'AddressesAssigned', 'OwnersElected', 'PodsCovered'] as const;
  const statements = types.map((type) => statementOf(type, problems));
  const failing = statements.find(({ status }) => status === 'False');
  const ready: Statement = failing
    ? {
        type: 'Ready',
        status: 'False',
        reason: failing.reason,
        message: `${failing.type} is False: ${failing.message}`.slice(0, LONGEST_MESSAGE),
      }
    : { type: 'Ready', status: 'True', reason: 'Ready', message: 'pods leave with the addresses of the rules' };
  return [...statements, ready];
};

/** The condition of an EgressIPPool. */
export const poolConditions = (problems: readonly EgressProblem[]): readonly Statement[] => [
  statementOf('Accepted', problems, 'all blocks and ranges are valid'),
];
