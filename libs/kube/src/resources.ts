import { API_GROUP, API_VERSION, type KindDefinition, type ObjectOf } from '@unbounded/crds';

import type {
  ConfigMap,
  Crd,
  Deployment,
  EndpointSlice,
  Event,
  KubeObject,
  Lease,
  Namespace,
  NetworkPolicy,
  Node,
  Pod,
  PodDisruptionBudget,
  Resource,
  Secret,
  Service,
  ServiceAccount,
  ServiceCidr,
} from './objects.ts';

const resource = <T extends KubeObject>(
  kind: string,
  groupVersion: string,
  plural: string,
  isNamespaced: boolean,
): Resource<T> => {
  const [version = '', group = ''] = groupVersion.split('/').reverse();
  return { kind, group, version, plural, isNamespaced };
};

export const nodes = resource<Node>('Node', 'v1', 'nodes', false);
export const pods = resource<Pod>('Pod', 'v1', 'pods', true);
export const services = resource<Service>('Service', 'v1', 'services', true);
export const configMaps = resource<ConfigMap>('ConfigMap', 'v1', 'configmaps', true);
export const secrets = resource<Secret>('Secret', 'v1', 'secrets', true);
export const endpointSlices = resource<EndpointSlice>('EndpointSlice', 'discovery.k8s.io/v1', 'endpointslices', true);
export const deployments = resource<Deployment>('Deployment', 'apps/v1', 'deployments', true);
export const networkPolicies = resource<NetworkPolicy>(
  'NetworkPolicy',
  'networking.k8s.io/v1',
  'networkpolicies',
  true,
);
export const podDisruptionBudgets = resource<PodDisruptionBudget>(
  'PodDisruptionBudget',
  'policy/v1',
  'poddisruptionbudgets',
  true,
);
export const namespaces = resource<Namespace>('Namespace', 'v1', 'namespaces', false);
export const serviceAccounts = resource<ServiceAccount>('ServiceAccount', 'v1', 'serviceaccounts', true);
export const leases = resource<Lease>('Lease', 'coordination.k8s.io/v1', 'leases', true);
export const events = resource<Event>('Event', 'events.k8s.io/v1', 'events', true);
/** Served since Kubernetes 1.33. */
export const serviceCidrs = resource<ServiceCidr>('ServiceCIDR', 'networking.k8s.io/v1', 'servicecidrs', false);
export const crds = resource<Crd>(
  'CustomResourceDefinition',
  'apiextensions.k8s.io/v1',
  'customresourcedefinitions',
  false,
);

/** One of our own kinds. */
export const resourceOf = <D extends KindDefinition>({ kind, plural, scope }: D): Resource<ObjectOf<D>> =>
  resource(kind, `${API_GROUP}/${API_VERSION}`, plural, scope === 'Namespaced');
