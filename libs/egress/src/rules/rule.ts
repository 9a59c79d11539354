import type { AssignedAddress, LabelSelector } from '@unbounded/crds';
import type { Address, Family, Prefix } from '@unbounded/ip';

/** A StaticEgressIP or a ClusterStaticEgressIP. */
export interface RuleObject {
  readonly kind: 'StaticEgressIP' | 'ClusterStaticEgressIP';
  /** Undefined for a ClusterStaticEgressIP. */
  readonly namespace: string | undefined;
  readonly name: string;
  /** KIND/NAMESPACE/NAME, or KIND/NAME. */
  readonly key: string;
  readonly createdAt: string;
  /** What the last plan assigned. */
  readonly assigned: readonly AssignedAddress[];
}

/** Which pods a rule covers. */
export type PodSelection =
  | { readonly by: 'service'; readonly service: string }
  | { readonly by: 'labels'; readonly pods: LabelSelector; readonly namespaces?: LabelSelector }
  /** It cannot be told. */
  | { readonly by: 'nothing' };

/** Where the addresses of a rule come from. */
export type AddressSource =
  | { readonly field: 'egressip' | 'egressips'; readonly addresses: readonly Address[] }
  | { readonly field: 'pool'; readonly pool: string; readonly count: number };

/** One entry of spec.rules, read. */
export interface Rule {
  readonly object: RuleObject;
  readonly index: number;
  /** The object's key and the index: unique. */
  readonly key: string;
  /** `spec.rules[0]` */
  readonly path: string;
  readonly selection: PodSelection;
  /** Of the selection and the destination: stays when rules are inserted before this one. */
  readonly selectionPrint: string;
  readonly destinations: readonly Prefix[];
  /** The destination as it was given; undefined: everything outside of the cluster. */
  readonly cidr: Prefix | undefined;
  readonly except: readonly Prefix[];
  readonly families: readonly Family[];
  readonly priority: number;
  readonly source: AddressSource;
  readonly whenUnavailable: 'Drop' | 'Node';
}
