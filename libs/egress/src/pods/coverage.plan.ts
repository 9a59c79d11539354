import { groupBy } from '../order.ts';
import type { EgressProblem } from '../problem.ts';
import type { Rule } from '../rules/rule.ts';
import type { SelectedPod } from './pod.plan.ts';
import type { FullPods } from './select.plan.ts';

export interface Coverage {
  /** Pods that leave by one of its rules, by the key of the object. */
  readonly podsOf: ReadonlyMap<string, number>;
  /** By the key of the rule. */
  readonly problems: ReadonlyMap<string, readonly EgressProblem[]>;
}

/** Pods that a message names; the rest is counted. */
const NAMED_PODS = 5;

const namesOf = (pods: readonly Pick<SelectedPod, 'pod'>[], count = pods.length): string => {
  const names = pods.map(({ pod }) => `${pod.namespace}/${pod.name}`).toSorted();
  const more = count > NAMED_PODS ? ` and ${count - NAMED_PODS} more` : '';
  return names.slice(0, NAMED_PODS).join(', ') + more;
};

/** What of the rules of a pod counts, by rule: thousands of pods share one answer. */
interface RulesByFate {
  readonly shadowedBy: ReadonlyMap<Rule, Rule>;
  readonly excess: ReadonlySet<Rule>;
}

const createFates = (): ((pod: SelectedPod) => RulesByFate) => {
  const known = new Map<SelectedPod['effective'], RulesByFate>();
  return ({ effective }) => {
    const found = known.get(effective) ?? {
      shadowedBy: new Map(effective.shadowed.map(({ rule, by }) => [rule, by])),
      excess: new Set(effective.excess),
    };
    known.set(effective, found);
    return found;
  };
};
type FateOf = ReturnType<typeof createFates>;

const hostNetworkProblems = (rule: Rule, pods: readonly SelectedPod[]): EgressProblem[] => {
  const onHost = pods.filter(({ pod }) => pod.isHostNetwork);
  if (onHost.length === 0) return [];
  const remedy =
    'these pods have the network of their node (hostNetwork) and leave with its address: leave them out of the selection';
  return [{ condition: 'PodsCovered', reason: 'HostNetwork', field: rule.path, value: namesOf(onHost), remedy }];
};

/** A rule that never serves any of its pods is not in force; one that serves some says which it does not. */
const shadowProblems = (rule: Rule, pods: readonly SelectedPod[], fateOf: FateOf): EgressProblem[] => {
  const covered = pods.filter(({ pod }) => !pod.isHostNetwork);
  const shadows = covered.flatMap((selected) => {
    const by = fateOf(selected).shadowedBy.get(rule);
    return by ? [{ selected, by }] : [];
  });
  const isComplete = shadows.length > 0 && shadows.length === covered.length;
  return [...groupBy(shadows, ({ by }) => by.key)].map(([key, found]) => ({
    condition: isComplete ? 'Accepted' : 'PodsCovered',
    reason: 'Shadowed',
    field: rule.path,
    value: namesOf(found.map(({ selected }) => selected)),
    remedy: `${key} takes precedence for all destinations of the rule: change priority or the selection of one of them`,
  }));
};

const excessProblems = (
  rule: Rule,
  pods: readonly SelectedPod[],
  fateOf: FateOf,
  beyond: FullPods | undefined,
): EgressProblem[] => {
  const excess = pods.filter((selected) => fateOf(selected).excess.has(rule));
  const count = excess.length + (beyond?.count ?? 0);
  if (count === 0) return [];
  const named = [...excess, ...(beyond?.some ?? []).map((pod) => ({ pod }))];
  const remedy = 'these pods have too many rules; what no earlier one matches is dropped: select them by fewer rules';
  return [{ condition: 'PodsCovered', reason: 'TooManyRules', field: rule.path, value: namesOf(named, count), remedy }];
};

const foreignProblems = (
  rule: Rule,
  pods: readonly SelectedPod[],
  foreign: CoverageContext['foreign'],
): EgressProblem[] => {
  const found = foreign.size === 0 ? [] : pods.filter(({ pod }) => foreign.has(pod.uid));
  if (found.length === 0) return [];
  const [{ pod }] = found as [SelectedPod];
  const remedy = `status.podIPs has addresses that are not of the pods of their node (${foreign.get(pod.uid)!.join(', ')} of ${pod.name} on ${pod.node}), and that are not used: check that spec.podCIDRs of the Node holds them, and who writes the status`;
  return [{ condition: 'PodsCovered', reason: 'ForeignPodAddress', field: rule.path, value: namesOf(found), remedy }];
};

export interface CoverageContext {
  readonly rules: readonly Rule[];
  /** By the key of the rule. */
  readonly beyond: ReadonlyMap<string, FullPods>;
  /** Addresses of pods that do not count, by the UID of the pod. */
  readonly foreign: ReadonlyMap<string, readonly string[]>;
}

/** Which of the selected pods rules do serve, and why not the others. */
export const planCoverage = (
  selected: Iterable<SelectedPod>,
  { rules, beyond, foreign }: CoverageContext,
): Coverage => {
  const fateOf = createFates();
  const byRule = new Map<Rule, SelectedPod[]>();
  const served = new Map<string, Set<string>>();
  for (const entry of selected) {
    for (const rule of entry.selectedBy) {
      const pods = byRule.get(rule);
      if (pods) pods.push(entry);
      else byRule.set(rule, [entry]);
    }
    for (const { object } of entry.pod.isHostNetwork ? [] : entry.effective.rules) {
      const pods = served.get(object.key) ?? new Set();
      served.set(object.key, pods.add(entry.pod.uid));
    }
  }
  return {
    podsOf: new Map([...served].map(([key, pods]) => [key, pods.size])),
    problems: new Map(
      rules.map((rule) => {
        const pods = byRule.get(rule) ?? [];
        const problems = [
          ...hostNetworkProblems(rule, pods),
          ...shadowProblems(rule, pods, fateOf),
          ...foreignProblems(rule, pods, foreign),
          ...excessProblems(rule, pods, fateOf, beyond.get(rule.key)),
        ];
        return [rule.key, problems];
      }),
    ),
  };
};
