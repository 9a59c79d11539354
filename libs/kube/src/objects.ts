import type {
  EventsV1Event,
  V1CustomResourceDefinition,
  V1Deployment,
  V1EndpointSlice,
  V1Lease,
  V1Namespace,
  V1NetworkPolicy,
  V1Node,
  V1Pod,
  V1PodDisruptionBudget,
  V1ConfigMap,
  V1Secret,
  V1Service,
  V1ServiceAccount,
} from '@kubernetes/client-node';
import type { ObjectMeta } from '@unbounded/crds';

/** A type of client-node as it is on the wire: times are RFC 3339 text. */
type Wire<T> = T extends Date
  ? string
  : T extends readonly (infer E)[]
    ? readonly Wire<E>[]
    : T extends object
      ? { readonly [K in keyof T]: Wire<T[K]> }
      : T;

/** Anything with a name. */
export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
}

type Named<T> = Omit<Wire<T>, 'metadata'> & { readonly metadata: ObjectMeta };

export type Node = Named<V1Node>;
export type Lease = Named<V1Lease>;
export type Event = Named<EventsV1Event>;
export type Namespace = Named<V1Namespace>;
export type Pod = Named<V1Pod>;
export type ServiceAccount = Named<V1ServiceAccount>;
export type Secret = Named<V1Secret>;
export type ConfigMap = Named<V1ConfigMap>;
export type Service = Named<V1Service>;
/** Without ready pods the API server has null for both lists, whatever its description says. */
export type EndpointSlice = Named<Omit<V1EndpointSlice, 'endpoints' | 'ports'>> & {
  readonly endpoints: V1EndpointSlice['endpoints'] | null;
  readonly ports?: V1EndpointSlice['ports'] | null;
};
export type Deployment = Named<V1Deployment>;
export type NetworkPolicy = Named<V1NetworkPolicy>;
export type PodDisruptionBudget = Named<V1PodDisruptionBudget>;
/** networking.k8s.io/v1 */
export type ServiceCidr = KubeObject & { readonly spec?: { readonly cidrs?: readonly string[] } };
export type Crd = Named<V1CustomResourceDefinition>;

/** Where the API server keeps objects of a kind. `T` is the type of the objects. */
export interface Resource<T extends KubeObject> {
  readonly kind: string;
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly isNamespaced: boolean;
  /** Never set: it carries the type. */
  readonly objects?: () => T;
}
