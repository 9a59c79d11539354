import {
  clusterStaticEgressIpKind,
  type ClusterStaticEgressIP,
  type EgressIPPool,
  egressIpPoolKind,
  type EgressNodeSlice,
  egressNodeSliceKind,
  type Site,
  siteKind,
  type StaticEgressIP,
  staticEgressIpKind,
} from '@unbounded/crds';
import {
  type Namespace,
  namespaces,
  type Node,
  nodes,
  type Pod,
  pods,
  type Resource,
  resourceOf,
  type Service,
  services,
} from '@unbounded/kube';

/** All objects that a plan is made from. */
export interface EgressObjects {
  readonly rules: readonly StaticEgressIP[];
  readonly clusterRules: readonly ClusterStaticEgressIP[];
  readonly pools: readonly EgressIPPool[];
  readonly slices: readonly EgressNodeSlice[];
  readonly nodes: readonly Node[];
  readonly pods: readonly Pod[];
  readonly services: readonly Service[];
  readonly namespaces: readonly Namespace[];
  readonly sites: readonly Site[];
}

type Resources = {
  readonly [Name in keyof EgressObjects]: Resource<EgressObjects[Name][number]>;
};

export const EGRESS_RESOURCES: Resources = {
  rules: resourceOf(staticEgressIpKind),
  clusterRules: resourceOf(clusterStaticEgressIpKind),
  pools: resourceOf(egressIpPoolKind),
  slices: resourceOf(egressNodeSliceKind),
  nodes,
  pods,
  services,
  namespaces,
  sites: resourceOf(siteKind),
};

/** Pods that have a node and have not ended: no other one sends. */
export const SENDING_PODS = {
  fieldSelector: 'spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed',
} as const;
