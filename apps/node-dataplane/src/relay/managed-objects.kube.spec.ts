import { coreClients, nodes, type Service, services } from '@unbounded/kube';
import { waysToManaged } from '@unbounded/relay-client';
import { type ApiServer, createNode, resetCluster, startApiServer } from '@unbounded/testing';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { readManagedRelay } from './managed-objects.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await startApiServer();
});
beforeEach(async () => {
  await resetCluster(api.cluster);
  const client = api.cluster.client(services);
  for (const { metadata } of (await client.list({ namespace: 'default' })).items)
    if (metadata.name === 'relay') await client.delete('relay', { namespace: 'default' });
});
afterAll(() => api?.stop());

const create = (spec: object): Promise<Service> => {
  const metadata = { name: 'relay', namespace: 'default' };
  const ports = [{ name: 'relay', port: 3478, targetPort: 3478 }];
  return api.cluster
    .client(services)
    .create({ apiVersion: 'v1', kind: 'Service', metadata, spec: { selector: { app: 'relay' }, ports, ...spec } });
};
const ways = async (): Promise<string[]> =>
  waysToManaged(await readManagedRelay(api.cluster, 'default', 'n1')()).map(({ host, port }) => `${host} ${port}`);

test('there is no way without the Service, and none by a ClusterIP', async () => {
  expect(await ways()).toEqual([]);
  await create({});
  expect(await ways()).toEqual([]);
});

test('external IPs come first', async () => {
  await create({ type: 'LoadBalancer', externalIPs: ['192.0.2.9'] });
  expect(await ways()).toEqual(['192.0.2.9 3478']);
});

test('then a load balancer, as soon as it has an address', async () => {
  await create({ type: 'LoadBalancer', allocateLoadBalancerNodePorts: false });
  expect(await ways()).toEqual([]);
  const ingress = [{ ip: '198.51.100.7' }, { hostname: 'lb.example.com' }];
  const status = { status: { loadBalancer: { ingress } } };
  await api.cluster.client(services).mergePatch('relay', status, { namespace: 'default', subresource: 'status' });
  expect(await ways()).toEqual(['198.51.100.7 3478', 'lb.example.com 3478']);
});

test('then the node port at public addresses of nodes', async () => {
  await createNode(coreClients(api.cluster).nodes, { name: 'n1', internalIPs: ['10.1.0.1'] });
  const { spec } = await create({ type: 'NodePort' });
  expect(await ways()).toEqual([]);
  const addresses = [{ type: 'ExternalIP', address: '203.0.113.5' }];
  await api.cluster.client(nodes).mergePatch('n1', { status: { addresses } }, { subresource: 'status' });
  expect(await ways()).toEqual([`203.0.113.5 ${spec!.ports![0]!.nodePort}`]);
});
