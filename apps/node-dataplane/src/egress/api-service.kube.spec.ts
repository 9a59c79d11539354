import { endpointSlices, nodes, services } from '@unbounded/kube';
import { openCluster } from '@unbounded/kube/open-cluster';
import { type ApiServer, borrowApiServer, installAccessRules, kubeconfigOf, resetCluster } from '@unbounded/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createApiService } from './api-service.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await borrowApiServer();
  await resetCluster(api.cluster);
  await api.cluster.client(nodes).create({ metadata: { name: 'n1' } });
  await installAccessRules(api);
});
afterAll(() => api?.stop());

test('with the rights of an agent: addresses of the Service, and of what it leads to', async () => {
  const { spec } = await api.cluster.client(services).get('kubernetes', { namespace: 'default' });
  // One that is on a loopback address alone, as this is, makes none.
  await api.cluster.client(endpointSlices).create({
    metadata: { name: 'kubernetes', namespace: 'default' },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['198.51.100.7'] }],
  });
  const agent = openCluster({ kubeconfig: await kubeconfigOf(api, 'node-dataplane', 'n1') });
  try {
    const service = createApiService({ cluster: agent, before: ['192.0.2.1'], onHeard: () => undefined });
    expect(service.addresses()).toEqual(['192.0.2.1']);
    await service.refresh();
    expect(service.addresses()).toEqual([...spec!.clusterIPs!, '198.51.100.7'].sort());
  } finally {
    agent.close();
  }
});
