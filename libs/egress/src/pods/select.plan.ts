import { matchesLabels } from '@unbounded/label-selector';
import type { EgressProblem } from '../problem.ts';
import { comparePrecedence } from '../rules/precedence.ts';
import type { Rule } from '../rules/rule.ts';
import type { EgressPod, EgressService, EgressSnapshot } from '../snapshot.ts';
import { MOST_SELECTING } from './effective-rules.ts';
import { indexPods, type LabelledPods } from './labelled-pods.ts';

/** Some pods, and the number of all. */
export interface FullPods {
  readonly some: readonly EgressPod[];
  readonly count: number;
}

/** Which pods rules select. */
export interface PodSelections {
  /**
   * By the UID of the pod, in the order of precedence, as many as are looked at and one more. Pods with hostNetwork too: they are selected
   * and cannot be covered.
   */
  readonly rulesOf: ReadonlyMap<string, readonly Rule[]>;
  /** Pods that a rule selects as one of so many that it is not looked at, by the key of the rule. */
  readonly beyond: ReadonlyMap<string, FullPods>;
  /** By the key of the rule. */
  readonly problems: ReadonlyMap<string, readonly EgressProblem[]>;
}

const problemOf = (rule: Rule, reason: string, value: string, remedy: string): EgressProblem => ({
  condition: 'Accepted',
  reason,
  field: `${rule.path}.service-name`,
  value,
  remedy,
});

const serviceProblem = (rule: Rule, name: string, service: EgressService | undefined): EgressProblem | undefined => {
  if (!service) {
    const remedy = `namespace ${rule.object.namespace} has no Service of this name: create it, or use podSelector`;
    return problemOf(rule, 'ServiceMissing', name, remedy);
  }
  if (Object.keys(service.selector ?? {}).length > 0) return undefined;
  return problemOf(
    rule,
    'ServiceWithoutSelector',
    name,
    'the Service selects no pods: give it a selector, or use podSelector',
  );
};

const podsOfLabels = (rule: Rule, snapshot: EgressSnapshot, pods: LabelledPods): readonly EgressPod[] => {
  const { selection, object } = rule;
  if (selection.by !== 'labels') return [];
  const namespaces =
    object.namespace === undefined
      ? snapshot.namespaces.filter(({ labels }) => matchesLabels(selection.namespaces, labels)).map(({ name }) => name)
      : [object.namespace];
  return namespaces.flatMap((name) => pods.select(name, selection.pods));
};

/** Pods that are named where many are meant. */
const SOME = 6;

/** The pods of a selection: those that have few rules, and those that have all that are looked at. */
interface PodGroup {
  open: readonly EgressPod[];
  readonly full: EgressPod[];
}

/** Thousands of rules with one selection ask for its pods once. Those of Services ask each, to say what is wrong with them. */
const createPodGroups = (podsOf: (rule: Rule) => readonly EgressPod[]): ((rule: Rule) => PodGroup) => {
  const groups = new Map<string, PodGroup>();
  return (rule) => {
    const key = JSON.stringify([rule.object.namespace, rule.selection]);
    const known = rule.selection.by === 'service' ? undefined : groups.get(key);
    const group = known ?? { open: podsOf(rule), full: [] };
    groups.set(key, group);
    return group;
  };
};

/** Whether the rule is one of those of the pod, which has so many at most. */
const add = (rulesOf: Map<string, Rule[]>, { uid }: EgressPod, rule: Rule): boolean => {
  const selected = rulesOf.get(uid);
  if (!selected) rulesOf.set(uid, [rule]);
  else if (selected.length <= MOST_SELECTING) selected.push(rule);
  else return false;
  return true;
};

/** Pods by the labels of a Service count ready or not: a pod sends before it is ready. */
export const planSelections = (rules: readonly Rule[], snapshot: EgressSnapshot): PodSelections => {
  const pods = indexPods(snapshot.pods.filter(({ isFinished }) => !isFinished));
  const services = new Map(snapshot.services.map((service) => [`${service.namespace}/${service.name}`, service]));
  const rulesOf = new Map<string, Rule[]>();
  const problems = new Map<string, readonly EgressProblem[]>();
  const podsOf = (rule: Rule): readonly EgressPod[] => {
    const { selection, object } = rule;
    if (selection.by !== 'service') return podsOfLabels(rule, snapshot, pods);
    const service = services.get(`${object.namespace}/${selection.service}`);
    const problem = serviceProblem(rule, selection.service, service);
    if (problem) problems.set(rule.key, [problem]);
    if (problem || !service) return [];
    return pods.select(service.namespace, { matchLabels: service.selector ?? {} });
  };
  const groups = createPodGroups(podsOf);
  const beyond = new Map<string, FullPods>();
  for (const rule of rules.toSorted(comparePrecedence)) {
    const group = groups(rule);
    if (group.open.length > 0)
      group.open = group.open.filter((pod) => add(rulesOf, pod, rule) || !group.full.push(pod));
    const count = group.full.length;
    if (count > 0) beyond.set(rule.key, { some: group.full.slice(0, SOME), count });
  }
  return { rulesOf, beyond, problems };
};
