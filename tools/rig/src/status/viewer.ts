import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ClusterView, NodeReport } from '@unbounded/status';
import { AGGREGATOR, NAMESPACE } from '../apps/tokens.ts';
import { applyManifests, kubectl } from '../kubernetes/control-plane.ts';
import type { LabLayout } from '../layout/layout.ts';
import { runAsync } from '../machine/command.ts';
import { state } from '../machine/paths.ts';
import { inNode } from '../node/node.ts';

/** Somebody who may read the live status of the lab's cluster, as docs/status.md has it. */

const ACCOUNT = 'status-viewer';
const ACCOUNT_NAMESPACE = 'default';
const caFile = join(state, 'status-ca.crt');

const accountObjects = [
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: ACCOUNT, namespace: ACCOUNT_NAMESPACE } },
  {
    ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRoleBinding', metadata: { name: ACCOUNT } },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'unbounded:status-viewer' },
    subjects: [{ kind: 'ServiceAccount', name: ACCOUNT, namespace: ACCOUNT_NAMESPACE }],
  },
];

/** A token that may read the status, for twelve hours; the account is made when it is not there. */
export const viewerToken = async (layout: LabLayout): Promise<string> => {
  await applyManifests(layout, accountObjects.map((object) => JSON.stringify(object)).join('\n---\n'));
  const words = ['create', 'token', ACCOUNT, '-n', ACCOUNT_NAMESPACE, '--duration=12h'];
  return (await kubectl(layout, words)).trim();
};

/** HOST:PORT of the Service, as nodes reach it. */
export const aggregatorEndpoint = async (layout: LabLayout): Promise<string> => {
  const ip = await kubectl(layout, ['get', 'service', AGGREGATOR, '-n', NAMESPACE, '-o', 'jsonpath={.spec.clusterIP}']);
  return `${ip.includes(':') ? `[${ip}]` : ip}:443`;
};

export interface Viewer {
  view(): Promise<ClusterView>;
  /** What nodes reported last, of those that have, in one request: a user has ten a second. */
  reports(nodes: readonly string[]): Promise<ReadonlyMap<string, NodeReport>>;
  /** What hinders the aggregator that answered. */
  notices(): Promise<readonly string[]>;
}

interface Answer {
  readonly view: ClusterView;
  readonly notices?: readonly string[];
}

/** Reads by curl, by the authority of the ConfigMap. */
export const createViewer = async (layout: LabLayout): Promise<Viewer> => {
  const token = await viewerToken(layout);
  const authority = ['get', 'configmap', `${AGGREGATOR}-ca`, '-n', NAMESPACE, '-o', 'jsonpath={.data.ca\\.crt}'];
  writeFileSync(caFile, await kubectl(layout, authority));
  const curl = ['curl', '-sS', '--fail-with-body', '--max-time', '5', '--cacert', caFile, '--header', '@-'];
  const to = ['--connect-to', `${AGGREGATOR}::${await aggregatorEndpoint(layout)}`];
  const ask = async <T>(path: string): Promise<T> => {
    const printed = await runAsync(
      [...inNode(layout.controlPlane.name), ...curl, ...to, `https://${AGGREGATOR}/v1alpha1/${path}`],
      { input: `Authorization: Bearer ${token}\n` }, // not among the arguments, which every process may read
    );
    return JSON.parse(printed) as T;
  };
  return {
    view: async () => (await ask<Answer>('view')).view,
    reports: async (names) => {
      const { nodes } = await ask<{ readonly nodes: Record<string, { readonly report: NodeReport }> }>(
        `nodes?names=${names.join(',')}`,
      );
      return new Map(Object.entries(nodes).map(([name, { report }]) => [name, report]));
    },
    notices: async () => (await ask<Answer>('view')).notices ?? [],
  };
};
