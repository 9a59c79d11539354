import type { LabelSelector } from '@unbounded/crds';

export type Labels = Readonly<Record<string, string>>;

type Requirement = NonNullable<LabelSelector['matchExpressions']>[number];

const meets = ({ key, operator, values = [] }: Requirement, labels: Labels): boolean => {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      // As in Kubernetes, an object without the label meets NotIn.
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
  }
};

/** Whether the labels are selected; an absent or empty selector selects everything. */
export const matchesLabels = (selector: LabelSelector | undefined, labels: Labels): boolean =>
  Object.entries(selector?.matchLabels ?? {}).every(
    ([key, value]) => Object.hasOwn(labels, key) && labels[key] === value,
  ) && (selector?.matchExpressions ?? []).every((requirement) => meets(requirement, labels));
