import { clusterStaticEgressIpKind, staticEgressIpKind } from '@unbounded/crds';
import { type EgressSnapshot, planEgress } from '@unbounded/egress';
import { type Cluster, clientOf, isNotFound, namespaces, services } from '@unbounded/kube';

/**
 * Whether any rule selects a pod, as the API server has rules and labels at this moment: what an agent has watched may be older than the
 * pod. The same planner decides as the controller's.
 */
export type AskSelection = (pod: PodIdentity) => Promise<'none' | 'selected'>;

interface PodIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  labels(): Promise<Readonly<Record<string, string>>>;
}

const NOTHING = { pools: [], slices: [], nodes: [], cluster: { pods: [], services: [] }, claims: [], now: '' } as const;

/** Of a kind that the cluster does not have there are none. */
const unlessAbsent = async <T>(work: Promise<readonly T[]>): Promise<readonly T[]> => {
  try {
    return await work;
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
};

/** @throws ApiError, TransportError: it is not known */
export const createAskSelection = (cluster: Cluster): AskSelection => {
  const clients = {
    rules: clientOf(cluster, staticEgressIpKind),
    clusterRules: clientOf(cluster, clusterStaticEgressIpKind),
    services: cluster.client(services),
    namespaces: cluster.client(namespaces),
  };
  const servicesOf = async (rules: EgressSnapshot['rules'], namespace: string): Promise<EgressSnapshot['services']> => {
    const names = new Set(rules.flatMap(({ spec }) => spec.rules.flatMap((rule) => rule['service-name'] ?? [])));
    const found = await Promise.all(
      [...names].map((name) =>
        unlessAbsent(
          clients.services.get(name, { namespace }).then(({ spec }) => [{ namespace, name, selector: spec?.selector }]),
        ),
      ),
    );
    return found.flat();
  };
  return async (pod) => {
    const { namespace, name, uid } = pod;
    const [rules, clusterRules] = await Promise.all([
      unlessAbsent(clients.rules.listAll({ namespace })),
      unlessAbsent(clients.clusterRules.listAll()),
    ]);
    if (rules.length + clusterRules.length === 0) return 'none';
    const [labels, ofNamespace, named] = await Promise.all([
      pod.labels(),
      clusterRules.length === 0 ? undefined : clients.namespaces.get(namespace),
      servicesOf(rules, namespace),
    ]);
    const { selectedPods } = planEgress({
      ...NOTHING,
      rules,
      clusterRules,
      services: named,
      namespaces: [{ name: namespace, labels: ofNamespace?.metadata.labels ?? {} }],
      pods: [{ uid, namespace, name, labels, node: '', addresses: [], isHostNetwork: false, isFinished: false }],
    });
    return selectedPods.has(uid) ? 'selected' : 'none';
  };
};
