import { isForbidden } from '@unbounded/kube';

import { type ApiServer } from './api-server.ts';
import { accessRules, NAMESPACE, namespaceFile, yamlOf } from './chart.ts';
import { until } from './until.ts';
import { tryWrite } from './write.ts';

const SENTINEL = 'policies-in-force';

/** Refuses a ConfigMap of its own name. */
const sentinel = [
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: SENTINEL },
    spec: {
      matchConstraints: {
        resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
      },
      validations: [{ expression: `object.metadata.name != '${SENTINEL}'`, reason: 'Forbidden' }],
    },
  },
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: SENTINEL },
    spec: { policyName: SENTINEL, validationActions: ['Deny'] },
  },
];

/**
 * Installs accounts, roles and admission policies of the chart, and waits until the policies are in force: the API server
 * hears of them a moment after they are written, in that order, so that one written last tells. The kinds must be there.
 */
export const installAccessRules = async (api: ApiServer, values: object = {}): Promise<void> => {
  api.kubectl('apply', '-f', namespaceFile);
  api.apply(yamlOf(accessRules(values)));
  api.apply(yamlOf(sentinel));
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: SENTINEL } };
  const attempt = { verb: 'create', path: '/api/v1/namespaces/default/configmaps', body } as const;
  await until('the policies are in force', () => tryWrite(api.cluster, attempt).then(() => false, isForbidden));
};

/** Path of a kubeconfig with the rights of one of the chart's accounts; bound to a Node, as tokens of its pods are. */
export const kubeconfigOf = async (api: ApiServer, account: string, boundNode?: string): Promise<string> =>
  api.kubeconfigFor(await api.serviceAccountToken(NAMESPACE, account, boundNode));
