import type { GatewayPool } from '@unbounded/crds';

import type { NodeFacts } from './node-facts.ts';

/** Why a node that a pool selects is not its gateway (yet). */
export type Ineligible = 'NoPublicKey' | 'NoExternalIP' | 'InOtherPool';

const isExternal = ({ spec }: GatewayPool): boolean => spec.type !== 'Internal';

export const isSelected = ({ spec }: GatewayPool, { name, labels }: Pick<NodeFacts, 'name' | 'labels'>): boolean =>
  (spec.nodeNames === undefined || spec.nodeNames.includes(name)) &&
  Object.entries(spec.nodeSelector).every(([label, value]) => labels[label] === value);

/** Labels below these domains are Kubernetes' own: NodeRestriction lets a kubelet set only those of the list on its Node. */
const KUBERNETES_DOMAINS = /(^|\.)(kubernetes|k8s)\.io$/;
const KUBELET_DOMAINS = /(^|\.)(kubelet|node)\.kubernetes\.io$/;
const KUBELET_LABELS: ReadonlySet<string> = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/arch',
  'kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/instance-type',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
]);

/** Whether a kubelet may set the label on its own Node (admission plugin NodeRestriction of Kubernetes). */
export const canKubeletSet = (label: string): boolean => {
  const slash = label.indexOf('/');
  const domain = slash < 0 ? '' : label.slice(0, slash);
  if (domain === 'node-restriction.kubernetes.io' || domain.endsWith('.node-restriction.kubernetes.io')) return false;
  return !KUBERNETES_DOMAINS.test(domain) || KUBELET_DOMAINS.test(domain) || KUBELET_LABELS.has(label);
};

/** Whether a node cannot make itself a gateway of the pool: it is named, or a label is needed that a kubelet cannot set. */
export const isSelectorProtected = ({ spec }: GatewayPool): boolean =>
  spec.nodeNames !== undefined || !Object.keys(spec.nodeSelector).every(canKubeletSet);

/** Undefined when the node can be a gateway of this pool. */
export const whyIneligible = (pool: GatewayPool, node: NodeFacts): Ineligible | undefined => {
  if (node.wireGuardPublicKey === undefined) return 'NoPublicKey';
  if (isExternal(pool) && node.externalIPs.length === 0 && node.externalNames.length === 0) return 'NoExternalIP';
  return undefined;
};

/** The pool whose gateway the node is: of those that select it and can take it, the one whose name sorts first. */
export const poolOf = (node: NodeFacts, pools: readonly GatewayPool[]): GatewayPool | undefined => {
  let best: GatewayPool | undefined;
  for (const pool of pools) {
    if (best && best.metadata.name <= pool.metadata.name) continue;
    if (isSelected(pool, node) && whyIneligible(pool, node) === undefined) best = pool;
  }
  return best;
};
