import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, expect, test } from 'vitest';

import { NAMESPACE, namespaceFile, renderChart, yamlOf } from './chart.ts';
import { type ApiServer, startApiServer, tryWrite, until, type Write } from './index.ts';

/** As on GKE: pods may be critical only in namespaces with a quota for such. */
const limits = {
  apiVersion: 'apiserver.config.k8s.io/v1',
  kind: 'AdmissionConfiguration',
  plugins: [
    {
      name: 'ResourceQuota',
      configuration: {
        apiVersion: 'apiserver.config.k8s.io/v1',
        kind: 'ResourceQuotaConfiguration',
        limitedResources: [
          {
            resource: 'pods',
            matchScopes: [
              {
                scopeName: 'PriorityClass',
                operator: 'In',
                values: ['system-node-critical', 'system-cluster-critical'],
              },
            ],
          },
        ],
      },
    },
  ],
};

const folder = mkdtempSync(join(tmpdir(), 'unbounded-quota-'));
let api: ApiServer;
beforeAll(async () => {
  const file = join(folder, 'admission.json');
  writeFileSync(file, JSON.stringify(limits));
  api = await startApiServer({ flags: [`--admission-control-config-file=${file}`] });
  api.kubectl('apply', '-f', namespaceFile);
});
afterAll(async () => {
  await api?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The critical pods of the chart's workloads, as their controllers would make them. */
const pods = (): Write[] =>
  renderChart().flatMap((object) => {
    const spec = (object as { spec?: { template?: { spec: { priorityClassName?: string } } } }).spec?.template?.spec;
    if (!spec?.priorityClassName?.startsWith('system-')) return [];
    const { name, namespace } = object.metadata;
    const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace }, spec };
    return [{ verb: 'create', path: `/api/v1/namespaces/${namespace}/pods`, body } as const];
  });

test('where critical pods are limited, the chart’s quota lets its own start', async () => {
  api.apply(yamlOf(renderChart().filter(({ kind }) => kind === 'ServiceAccount')));
  expect(pods()).toHaveLength(6);
  for (const pod of pods())
    await expect(tryWrite(api.cluster, pod)).rejects.toThrow('insufficient quota to match these scopes');
  const quota = renderChart().filter(({ kind }) => kind === 'ResourceQuota');
  api.apply(yamlOf(quota));
  // What Kubernetes' controller manager does with a new quota.
  await api.cluster.transport.send({
    method: 'PATCH',
    path: `/api/v1/namespaces/${NAMESPACE}/resourcequotas/${quota[0]!.metadata.name}/status`,
    contentType: 'application/merge-patch+json',
    body: { status: { hard: { pods: '1G' }, used: { pods: '0' } } },
  });
  for (const pod of pods())
    await until(`${(pod.body as { metadata: { name: string } }).metadata.name} may start`, () =>
      tryWrite(api.cluster, pod).then(() => true),
    );
});

test('a quota can be left out', () => {
  const values = { global: { resourceQuota: { enabled: false } } };
  expect(renderChart({ values }).filter(({ kind }) => kind === 'ResourceQuota')).toEqual([]);
});
