import { clusterStaticEgressIpKind, staticEgressIpKind } from '@unbounded/crds';
import { namedServices, selectsByLabels, serviceSelects } from '@unbounded/egress';
import { type Cluster, clientOf, isNotFound, namespaces, services } from '@unbounded/kube';
import { createRuleReader } from './rule-reader.ts';

/**
 * Whether any rule selects a pod, as the API server has rules and labels at this moment: what an agent has watched may be older than the
 * pod. The rules are read as the controller reads them.
 */
export type AskSelection = (pod: PodIdentity) => Promise<'none' | 'selected'>;

interface PodIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  labels(): Promise<Readonly<Record<string, string>>>;
}

/** Rules of a namespace can name thousands. */
const SERVICES_AT_ONCE = 16;

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
    services: cluster.client(services),
    namespaces: cluster.client(namespaces),
  };
  const rulesOf = createRuleReader(clientOf(cluster, staticEgressIpKind));
  const clusterRulesNow = createRuleReader(clientOf(cluster, clusterStaticEgressIpKind));
  const isSelectedBy = async (name: string, namespace: string, labels: Readonly<Record<string, string>>) => {
    const found = await unlessAbsent(clients.services.get(name, { namespace }).then((service) => [service]));
    return found.some(({ spec }) => serviceSelects(spec?.selector, labels));
  };
  /** Of the pod before: then labels are asked for beside the rules, and not behind them. */
  let hadRules = false;
  return async (pod) => {
    const { namespace } = pod;
    const early = hadRules ? pod.labels() : undefined;
    early?.catch(() => undefined); // told where they are needed
    const [rules, clusterRules] = await Promise.all([
      unlessAbsent(rulesOf(namespace)),
      unlessAbsent(clusterRulesNow()),
    ]);
    hadRules = rules.length + clusterRules.length > 0;
    if (!hadRules) return 'none';
    const [labels, ofNamespace] = await Promise.all([
      early ?? pod.labels(),
      clusterRules.length === 0 ? undefined : clients.namespaces.get(namespace),
    ]);
    const namespaceLabels = ofNamespace?.metadata.labels ?? {};
    if (selectsByLabels(rules, clusterRules, { labels, namespaceLabels })) return 'selected';
    const names = [...namedServices(rules)];
    for (let at = 0; at < names.length; at += SERVICES_AT_ONCE) {
      const some = names.slice(at, at + SERVICES_AT_ONCE);
      const answers = await Promise.all(some.map((name) => isSelectedBy(name, namespace, labels)));
      if (answers.includes(true)) return 'selected';
    }
    return 'none';
  };
};
