import { coreClients, endpointSlices, ignoreGone, type Service, services } from '@unbounded/kube';
import { managedServices } from '@unbounded/relay-client';
import { type ApiServer, borrowApiServer, createNode, resetCluster } from '@unbounded/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { silentLogger } from '@unbounded/telemetry';
import { managedRelaySource } from './managed-objects.ts';

const WAIT = { timeout: 10_000 };
let api: ApiServer;
beforeAll(async () => {
  api = await borrowApiServer();
});
beforeEach(async () => {
  gateways = [];
  await resetCluster(api.cluster);
  const client = api.cluster.client(services);
  for (const { metadata } of (await client.list({ namespace: 'default' })).items)
    if (metadata.name === 'relay') await client.delete('relay', { namespace: 'default' });
  await api.cluster.client(endpointSlices).delete('relay-1', { namespace: 'default' }).catch(ignoreGone);
});
afterAll(() => api?.stop());

const create = (spec: object): Promise<Service> => {
  const metadata = { name: 'relay', namespace: 'default' };
  const ports = [{ name: 'relay', port: 3478, targetPort: 3478 }];
  return api.cluster
    .client(services)
    .create({ apiVersion: 'v1', kind: 'Service', metadata, spec: { selector: { app: 'relay' }, ports, ...spec } });
};
let gateways: { readonly name: string; readonly externalIPs: readonly string[] }[] = [];
const source = () =>
  managedRelaySource(api.cluster, {
    namespace: 'default',
    nodeName: 'n1',
    gateways: () => gateways,
    logger: silentLogger,
  });
const ways = async (): Promise<string[]> =>
  managedServices(await source().read()).flatMap((relay) => relay.ways.map(({ host, port }) => `${host} ${port}`));

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

const slice = (...ready: (readonly [node: string, isReady: boolean])[]) =>
  api.cluster.client(endpointSlices).create({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'relay-1', namespace: 'default', labels: { 'kubernetes.io/service-name': 'relay' } },
    addressType: 'IPv4',
    endpoints: ready.map(([nodeName, isReady], index) => {
      return { addresses: [`100.64.0.${index}`], nodeName, conditions: { ready: isReady } };
    }),
    ports: [{ name: 'relay', port: 3478 }],
  });
const makeNodes = async (...names: string[]): Promise<void> => {
  for (const name of names) await createNode(coreClients(api.cluster).nodes, { name });
  gateways = names.map((name, index) => ({ name, externalIPs: [`203.0.113.${index + 1}`] }));
};

describe('then the node port, at external addresses of gateways', () => {
  test('where a relay is ready; on our own node without it', async () => {
    await makeNodes('n1', 'n2', 'n3', 'n4');
    const { spec } = await create({ type: 'NodePort', externalTrafficPolicy: 'Local' });
    expect(await ways()).toEqual([]);
    await slice(['n1', true], ['n2', true], ['n3', false], ['gone', true]);
    expect(await ways()).toEqual(['100.64.0.0 3478', `203.0.113.2 ${spec!.ports![0]!.nodePort}`]);
  });

  test('nowhere, while no such node is a gateway, whatever its kubelet states', async () => {
    const worker = { name: 'n2', internalIPs: ['10.1.0.2'], externalIPs: ['203.0.113.9'] };
    await createNode(coreClients(api.cluster).nodes, worker);
    await create({ type: 'NodePort', externalTrafficPolicy: 'Local' });
    await slice(['n2', true]);
    expect(await ways()).toEqual([]);
  });
});

test('it tells when a relay comes to be, and when the way to it changes, until nobody wants to know', async () => {
  const told = vi.fn();
  const stop = source().watch(told);
  const { metadata } = await create({ type: 'NodePort', externalTrafficPolicy: 'Local' });
  await vi.waitUntil(() => told.mock.calls.length === 1, WAIT);
  await slice(['n1', true]);
  await vi.waitUntil(() => told.mock.calls.length === 2, WAIT);
  const patch = { spec: { externalIPs: ['192.0.2.9'] } };
  await api.cluster.client(services).mergePatch(metadata.name, patch, { namespace: 'default' });
  await vi.waitUntil(() => told.mock.calls.length === 3, WAIT);
  stop();
  await api.cluster.client(services).delete(metadata.name, { namespace: 'default' });
  await vi.waitUntil(async () => (await source().read()).service === undefined, WAIT);
  expect(told).toHaveBeenCalledTimes(3);
});
