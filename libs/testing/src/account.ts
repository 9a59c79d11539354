import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';

import { isForbidden } from '@unbounded/kube';

import type { ApiServer } from './api-server.ts';
import { accessRules, NAMESPACE, namespaceFile, yamlOf } from './chart.ts';
import { until } from './until.ts';
import { tryWrite } from './write.ts';

/** Refuses a ConfigMap of its own name. */
const sentinelOf = (name: string) => [
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name },
    spec: {
      matchConstraints: {
        resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
      },
      validations: [{ expression: `object.metadata.name != '${name}'`, reason: 'Forbidden' }],
    },
  },
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name },
    spec: { policyName: name, validationActions: ['Deny'] },
  },
];

/**
 * Installs accounts, roles and admission policies of the chart, and waits until the policies are in force: the API server
 * enforces them a moment after they are written, in that order, so that a sentinel that is written last shows it. Each call has a
 * sentinel of its own: that of an earlier call is in force before the changed policies are. The kinds must be there.
 */
export const installAccessRules = async (api: ApiServer, values: object = {}): Promise<void> => {
  const name = `policies-in-force-${randomUUID()}`;
  // kubectl writes in this order, and takes as long to start as to write.
  api.apply([readFileSync(namespaceFile, 'utf8'), yamlOf([...accessRules(values), ...sentinelOf(name)])].join('---\n'));
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } };
  const attempt = { verb: 'create', path: '/api/v1/namespaces/default/configmaps', body } as const;
  await until('the policies are in force', () => tryWrite(api.cluster, attempt).then(() => false, isForbidden));
};

/** Path of a kubeconfig with the rights of one of the chart's accounts; bound to a Node, as tokens of its pods are. */
export const kubeconfigOf = async (api: ApiServer, account: string, boundNode?: string): Promise<string> =>
  api.kubeconfigFor(await api.serviceAccountToken(NAMESPACE, account, boundNode));
