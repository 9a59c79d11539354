import { readFileSync } from 'node:fs';

import type { ApiServer } from './api-server.ts';
import { accessRules, NAMESPACE, namespaceFile, yamlOf } from './chart.ts';
import { policySentinel } from './policy-sentinel.ts';

/** Installs accounts, roles and admission policies of the chart, and waits until the policies are in force. The kinds must be there. */
export const installAccessRules = async (api: ApiServer, values: object = {}): Promise<void> => {
  const sentinel = policySentinel();
  // kubectl writes in this order, and takes as long to start as to write.
  api.apply([readFileSync(namespaceFile, 'utf8'), yamlOf([...accessRules(values), ...sentinel.objects])].join('---\n'));
  await sentinel.untilInForce(api.cluster);
};

/** Path of a kubeconfig with the rights of one of the chart's accounts; bound to a Node, as tokens of its pods are. */
export const kubeconfigOf = async (api: ApiServer, account: string, boundNode?: string): Promise<string> =>
  api.kubeconfigFor(await api.serviceAccountToken(NAMESPACE, account, boundNode));
