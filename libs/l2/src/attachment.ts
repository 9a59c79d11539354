import type { LabelSelector, Network } from '@unbounded/crds';

/** What the labels of its namespace let a pod do in a Network. */
interface Attachment {
  readonly mayAttach: boolean;
  /** It may send what routers and DHCP servers send. */
  readonly isTrusted: boolean;
}

type Labels = Readonly<Record<string, string>>;
type Requirement = NonNullable<LabelSelector['matchExpressions']>[number];

const meets = ({ key, operator, values = [] }: Requirement, labels: ReadonlyMap<string, string>): boolean => {
  const value = labels.get(key);
  const isListed = value !== undefined && values.includes(value);
  // As in Kubernetes, a namespace without the label meets NotIn.
  return { In: isListed, NotIn: !isListed, Exists: value !== undefined, DoesNotExist: value === undefined }[operator];
};

const selects = ({ matchLabels = {}, matchExpressions = [] }: LabelSelector, labels: ReadonlyMap<string, string>) =>
  Object.entries(matchLabels).every(([key, value]) => labels.get(key) === value) &&
  matchExpressions.every((requirement) => meets(requirement, labels));

/** @param namespaceLabels those of the pod's namespace */
export const attachmentOf = ({ spec }: Network, namespaceLabels: Labels): Attachment => {
  const labels = new Map(Object.entries(namespaceLabels));
  const { namespaceSelector, trustedNamespaceSelector } = spec;
  const mayAttach = selects(namespaceSelector, labels);
  const isTrusted = mayAttach && trustedNamespaceSelector !== undefined && selects(trustedNamespaceSelector, labels);
  return { mayAttach, isTrusted };
};
