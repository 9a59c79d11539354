import type { AssignedAddress } from '@unbounded/crds';

import type { RuleAddresses } from '../addresses/named.plan.ts';
import { ownerProblem } from '../owners/owner-problems.ts';
import type { Ownership } from '../owners/owners.plan.ts';
import type { AttachedSubnet } from '../owners/subnets.ts';
import type { Coverage } from '../pods/coverage.plan.ts';
import type { EgressProblem } from '../problem.ts';
import type { ParsedRules } from '../rules/parse-rules.ts';
import type { Rule } from '../rules/rule.ts';
import { ruleConditions, type Statement } from './conditions.plan.ts';

/** The status that a StaticEgressIP or ClusterStaticEgressIP is to have. */
export interface RuleStatus {
  readonly addresses: readonly AssignedAddress[];
  readonly pods: number;
  readonly conditions: readonly Statement[];
}

export interface StatusContext {
  readonly addresses: ReadonlyMap<string, RuleAddresses>;
  readonly ownerships: ReadonlyMap<string, Ownership>;
  readonly ignoredSubnets: readonly AttachedSubnet[];
  readonly coverage: Coverage;
  /** Of Services, by the key of the rule. */
  readonly selectionProblems: ReadonlyMap<string, readonly EgressProblem[]>;
  readonly now: string;
}

const assignedOf = (rule: Rule, { addresses, ownerships, now }: StatusContext): AssignedAddress[] =>
  (addresses.get(rule.key)?.addresses ?? []).map(({ text, allocatedFrom }) => {
    const { owner, epoch = 0, blockedBy, isFormer } = ownerships.get(text) ?? {};
    const former = rule.object.assigned.find(({ address }) => address === text);
    const isSame = former?.node === owner && former?.epoch === epoch;
    return {
      address: text,
      rule: rule.index,
      selection: rule.selectionPrint,
      ...(allocatedFrom === undefined ? {} : { pool: allocatedFrom }),
      ...(owner === undefined ? {} : { node: owner, since: (isSame ? former?.since : undefined) ?? now }),
      ...(owner === undefined && blockedBy !== undefined && !isFormer ? { formerNode: blockedBy } : {}),
      // Kept while nobody owns it: an epoch never counts twice.
      epoch: Math.max(epoch, former?.epoch ?? 0),
    };
  });

const problemsOf = (rule: Rule, context: StatusContext): EgressProblem[] => {
  const { addresses, problems } = context.addresses.get(rule.key) ?? { addresses: [], problems: [] };
  const usable = addresses.filter(({ isUsable }) => isUsable);
  const isUnexplained = usable.length === 0 && !problems.some(({ condition }) => condition === 'AddressesAssigned');
  const without: EgressProblem = {
    condition: 'AddressesAssigned',
    reason: 'NoAddress',
    field: `${rule.path}.${rule.source.field}`,
    value: rule.source.field === 'pool' ? rule.source.pool : '',
    remedy: 'the rule has no address that it can use, and its pods are dropped: Accepted says why',
  };
  return [
    ...(context.selectionProblems.get(rule.key) ?? []),
    ...problems,
    ...(isUnexplained ? [without] : []),
    ...usable.flatMap((address) => {
      const ownership = context.ownerships.get(address.text);
      return (ownership && ownerProblem(rule, address, ownership, context.ignoredSubnets)) ?? [];
    }),
    ...(context.coverage.problems.get(rule.key) ?? []),
  ];
};

export const planRuleStatus = ({ object, rules, problems }: ParsedRules, context: StatusContext): RuleStatus => ({
  addresses: rules.flatMap((rule) => assignedOf(rule, context)),
  pods: context.coverage.podsOf.get(object.key) ?? 0,
  conditions: ruleConditions([...problems, ...rules.flatMap((rule) => problemsOf(rule, context))]),
});
