import type { EgressProblem } from '../problem.ts';
import { comparePrecedence } from '../rules/precedence.ts';
import type { Rule } from '../rules/rule.ts';
import { matchesLabels } from '../selector.ts';
import type { EgressPod, EgressService, EgressSnapshot } from '../snapshot.ts';
import { indexPods, type LabelledPods } from './labelled-pods.ts';

/** Which pods rules select. */
export interface PodSelections {
  /** By the UID of the pod, in the order of precedence. Pods with hostNetwork too: they are selected and cannot be covered. */
  readonly rulesOf: ReadonlyMap<string, readonly Rule[]>;
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
  for (const rule of rules.toSorted(comparePrecedence)) {
    for (const { uid } of podsOf(rule)) {
      const selected = rulesOf.get(uid);
      if (selected) selected.push(rule);
      else rulesOf.set(uid, [rule]);
    }
  }
  return { rulesOf, problems };
};
