import {
  annotations,
  gatewayPoolKind,
  meshKind,
  type RelaySpec,
  siteKind,
  type SiteNodeSlice,
  siteNodeSliceKind,
} from '@unbounded/crds';
import {
  clientOf,
  configMaps,
  coreClients,
  deployments,
  isNotFound,
  type KubeObject,
  networkPolicies,
  podDisruptionBudgets,
  pods as podResource,
  secrets,
  serviceAccounts,
  services,
} from '@unbounded/kube';

import {
  type ApiServer,
  type AppProcess,
  borrowApiServer,
  createNode,
  installAccessRules,
  kubeconfigOf,
  poolObject,
  publicKeyFor,
  resetCluster,
  siteObject,
  startApp,
  until,
} from '@unbounded/testing';
import { NAMESPACE, renderChart, yamlOf } from '@unbounded/testing/chart';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';

/** Against the real API server, with the rights and the admission policies of the chart. */

let api: ApiServer;
let kubeconfig: string;
const apps: AppProcess[] = [];
const at = { namespace: NAMESPACE };
const clients = () => ({
  deployments: api.cluster.client(deployments),
  services: api.cluster.client(services),
  secrets: api.cluster.client(secrets),
  configMaps: api.cluster.client(configMaps),
  policies: api.cluster.client(networkPolicies),
  budgets: api.cluster.client(podDisruptionBudgets),
});
const meshes = () => clientOf(api.cluster, meshKind);
beforeAll(async () => {
  api = await borrowApiServer();
  await resetCluster(api.cluster);
  await installAccessRules(api, { global: { image: { repository: 'registry.example.com/unbounded', tag: '1' } } });
  kubeconfig = await kubeconfigOf(api, 'gateway-health');
});
beforeEach(async () => {
  await resetCluster(api.cluster);
  for (const client of Object.values(clients()))
    for (const { metadata } of await (client as ReturnType<typeof clients>['services']).listAll(at))
      await client.delete(metadata.name, at);
});
afterEach(async () => {
  for (const app of apps.splice(0)) await app.stop('SIGKILL');
});
afterAll(() => api?.stop());

const start = (...flags: string[]): AppProcess => {
  const app = startApp('gateway-health', ['--kubeconfig', kubeconfig, ...flags]);
  apps.push(app);
  return app;
};
const startWithImage = () => start('--relay-image', 'registry.example.com/unbounded:1');
const create = (relay: RelaySpec, name = 'default') =>
  meshes().create({
    apiVersion: 'net.unbounded-cloud.io/v1alpha1',
    kind: 'Mesh',
    metadata: { name },
    spec: { relay },
  });
const managed = (block: NonNullable<RelaySpec['managed']> = {}): RelaySpec => ({ provider: 'managed', managed: block });
const verdict = async (name = 'default') => {
  const condition = (await meshes().get(name)).status?.conditions?.find(({ type }) => type === 'RelayReady');
  return condition && `${condition.status} ${condition.reason}: ${condition.message}`;
};
const says = (text: string) => async () => (await verdict())?.includes(text);
const gone = async (get: () => Promise<KubeObject>) => get().then(() => false, isNotFound);
const becomeAvailable = (count: number) =>
  clients().deployments.mergePatch(
    'relay',
    { status: { replicas: count, availableReplicas: count, readyReplicas: count } },
    { ...at, subresource: 'status' },
  );

/** Of the pool p. */
const createGateway = (name: string, internalIP: string, externalAddress: string) =>
  createNode(coreClients(api.cluster).nodes, {
    ...{ name, internalIPs: [internalIP], labels: { gateway: 'p' } },
    annotations: {
      [annotations.wireGuardPublicKey]: publicKeyFor(name),
      [annotations.externalAddress]: externalAddress,
    },
  });

test('a managed relay is made as asked for, changed with it, and taken away with it', async () => {
  startWithImage();
  await create(managed({ replicas: 2, port: 4443 }));
  const { deployments: all, services: reached, secrets: kept, policies, budgets } = clients();
  await until('Service', () => reached.get('relay', at));
  expect((await all.get('relay', at)).spec?.replicas).toBe(2);
  expect((await reached.get('relay', at)).spec).toMatchObject({ type: 'LoadBalancer', ports: [{ port: 4443 }] });
  expect((await reached.get('relay-headless', at)).spec?.clusterIP).toBe('None');
  expect((await policies.get('relay', at)).spec?.ingress).toHaveLength(2);
  expect((await budgets.get('relay', at)).spec?.maxUnavailable).toBe(1);
  const secret = (await kept.get('relay-links', at)).data;
  await until('told', says('False NotAvailable: 0 of 2 replicas'));
  await meshes().mergePatch('default', { spec: { relay: { managed: { replicas: 3 } } } });
  await until('scaled', async () => (await all.get('relay', at)).spec?.replicas === 3);
  expect((await kept.get('relay-links', at)).data).toEqual(secret);
  await meshes().mergePatch('default', {
    spec: { relay: { provider: 'external', external: { endpoint: 'relay.example.com:3478' } } },
  });
  for (const get of [
    () => all.get('relay', at),
    () => reached.get('relay', at),
    () => reached.get('relay-headless', at),
    () => kept.get('relay-links', at),
    () => policies.get('relay', at),
    () => budgets.get('relay', at),
  ])
    await until('gone', () => gone(get));
  await until('told', says('Unknown External'));
});

test('it is ready when a replica is available and nodes outside can find it; the address is shown', async () => {
  startWithImage();
  await create(managed());
  await until('Deployment', () => clients().deployments.get('relay', at));
  await until('Service', () => clients().services.get('relay', at));
  await becomeAvailable(1);
  await until('told', says('False NoAddress'));
  const status = { status: { loadBalancer: { ingress: [{ ip: '203.0.113.5' }] } } };
  await clients().services.mergePatch('relay', status, { ...at, subresource: 'status' });
  await until('told', says('True Available: at 203.0.113.5:3478; 1 of 1'));
  expect((await meshes().get('default')).status?.relayEndpoint).toBe('203.0.113.5:3478');
});

test('by a node port it stands on gateways and is found there, by the annotated address too, and on no worker', async () => {
  startWithImage();
  await create(managed({ serviceType: 'NodePort' }));
  const service = await until('Service', () => clients().services.get('relay', at));
  await becomeAvailable(1);
  await until('told', says('no gateway has an external address'));
  const { nodes } = coreClients(api.cluster);
  // What its kubelet states makes no node one for relays.
  await createNode(nodes, {
    name: 'worker',
    internalIPs: ['10.1.0.2'],
    externalIPs: ['203.0.113.9'],
    labels: { 'kubernetes.io/hostname': 'gw' },
  });
  await clientOf(api.cluster, siteKind).create(siteObject('a'));
  await clientOf(api.cluster, gatewayPoolKind).create(poolObject('p'));
  await createGateway('gw', '10.1.0.3', '203.0.113.7');
  const endpoint = `203.0.113.7:${service.spec!.ports![0]!.nodePort}`;
  await until('told', says(`True Available: at ${endpoint};`));
  expect((await meshes().get('default')).status?.relayEndpoint).toBe(endpoint);
  const { affinity } = (await clients().deployments.get('relay', at)).spec!.template.spec as { affinity?: object };
  const names = [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['gw'] }] }];
  expect(affinity).toEqual({
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: names } },
  });
  // Another one does not start the relay anew.
  await createGateway('another', '10.1.0.4', '203.0.113.8');
  await until('told', says('203.0.113.8'));
  expect((await clients().deployments.get('relay', at)).spec!.template.spec).toMatchObject({ affinity });
});

test('what somebody changes or deletes is made again', async () => {
  startWithImage();
  await create(managed());
  const { services: reached, deployments: all } = clients();
  const { metadata } = await until('Service', () => reached.get('relay', at));
  await all.mergePatch('relay', { spec: { replicas: 7 } }, at);
  await until('one replica', async () => (await all.get('relay', at)).spec?.replicas === 1);
  await reached.delete('relay', at);
  const again = await until('another', async () => {
    const found = await reached.get('relay', at);
    return found.metadata.uid !== metadata.uid && found;
  });
  expect(again.spec?.type).toBe('LoadBalancer');
});

test('after an operator has restarted it and chosen its nodes, it is changed as the Mesh says, and both stay', async () => {
  startWithImage();
  await create(managed());
  const { deployments: all } = clients();
  await until('Deployment', () => all.get('relay', at));
  const restartedAt = { 'kubectl.kubernetes.io/restartedAt': '2026-01-01T00:00:00Z' };
  const template = { metadata: { annotations: restartedAt }, spec: { nodeSelector: { disk: 'fast' } } };
  await all.mergePatch('relay', { spec: { template } }, at);
  await meshes().mergePatch('default', { spec: { relay: { managed: { replicas: 3 } } } });
  const { spec } = await until('scaled', async () => {
    const found = await all.get('relay', at);
    return found.spec?.replicas === 3 && found;
  });
  expect(spec!.template).toMatchObject(template);
  await becomeAvailable(3);
  await until('told', says('3 of 3 replicas are available'));
});

test('what the API server refuses is told with its answer, and the rest is made', async () => {
  start('--relay-image', 'registry.example.com/other:1');
  await create(managed());
  const isTold = says('False Refused: the API server refuses what the relay needs, Deployment');
  await until('told', isTold).catch(() => undefined);
  expect(await isTold()).toBe(true);
  expect(await verdict()).toContain('run the image registry.example.com/unbounded:1, not registry.example.com/other:1');
  await until('Service', () => clients().services.get('relay', at));
  const status = { status: { loadBalancer: { ingress: [{ ip: '203.0.113.5' }] } } };
  await clients().services.mergePatch('relay', status, { ...at, subresource: 'status' });
  await until('address', async () => (await meshes().get('default')).status?.relayEndpoint === '203.0.113.5:3478');
});

test('what was made by others is left alone, and told', async () => {
  const spec = { ports: [{ port: 1 }], selector: { app: 'theirs' } };
  const theirs = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'relay', ...at }, spec };
  const { metadata } = await clients().services.create(theirs);
  startWithImage();
  await create(managed());
  await until('told', says(`False NameConflict: Service ${NAMESPACE}/relay was made by somebody else`));
  await meshes().delete('default');
  await create({ provider: 'external', external: { endpoint: 'relay.example.com:3478' } });
  await until('told', says('Unknown External'));
  expect((await clients().services.get('relay', at)).metadata.resourceVersion).toBe(metadata.resourceVersion);
  expect((await clients().deployments.listAll(at)).length).toBe(0);
});

test('somebody else’s NetworkPolicy is left alone, told, and keeps no relay from running', async () => {
  const spec = { podSelector: { matchLabels: { app: 'theirs' } }, policyTypes: ['Ingress'] };
  const theirs = {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'relay', ...at },
    spec,
  };
  const { metadata } = await clients().policies.create(theirs);
  startWithImage();
  await create(managed());
  await until('told', says(`NetworkPolicy ${NAMESPACE}/relay: somebody else's, and left alone`));
  await until('Deployment', () => clients().deployments.get('relay', at));
  expect((await clients().policies.get('relay', at)).metadata.resourceVersion).toBe(metadata.resourceVersion);
});

test('a Mesh that goes takes its relay along, also while nobody was looking', async () => {
  const first = startWithImage();
  await create(managed());
  await until('Service', () => clients().services.get('relay', at));
  await first.stop('SIGKILL');
  await meshes().delete('default');
  startWithImage();
  await until('gone', () => gone(() => clients().deployments.get('relay', at)));
  await until('gone', () => gone(() => clients().services.get('relay', at)));
  expect(await clients().deployments.listAll(at)).toEqual([]);
});

describe('the list of keys', () => {
  const keys = async (): Promise<string> => (await clients().configMaps.get('relay-keys', at)).data!['keys']!;
  const key = (name: string): string => Buffer.alloc(32, `${name}.`).toString('base64');
  const publish = (...names: readonly string[]): Promise<SiteNodeSlice> =>
    clientOf(api.cluster, siteNodeSliceKind).apply(
      {
        apiVersion: 'net.unbounded-cloud.io/v1alpha1',
        kind: 'SiteNodeSlice',
        metadata: { name: 's1-0' },
        siteName: 's1',
        sliceIndex: 0,
        nodes: names.map((name) => ({ name, wireGuardPublicKey: key(name) })),
      } as SiteNodeSlice,
      { fieldManager: 'test', force: true },
    );
  const pods = () => api.cluster.client(podResource);
  const createPod = async (name: string) => {
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', ...at } };
    await api.cluster
      .client(serviceAccounts)
      .create(account)
      .catch(() => undefined);
    return pods().create({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, ...at, labels: { 'app.kubernetes.io/name': 'relay' } },
      spec: { automountServiceAccountToken: false, containers: [{ name: 'relay', image: 'a' }] },
    });
  };
  afterEach(async () => {
    for (const { metadata } of await pods().listAll(at))
      await pods()
        .delete(metadata.name, at)
        .catch(() => undefined);
  });

  test('follows the nodes while a relay is managed, is told to its pods, and goes with it', async () => {
    await publish('a', 'b');
    startWithImage();
    await create(managed());
    await until(
      'the list',
      async () =>
        (await keys()) ===
        [key('a'), key('b')]
          .toSorted()
          .map((each) => `${each}\n`)
          .join(''),
    );
    await createPod('relay-1');
    await publish('b', 'c');
    await until('the new list', async () => (await keys()).includes(key('c')));
    expect(await keys()).not.toContain(key('a'));
    const told = await until('its pod is told', async () => {
      const { metadata } = await pods().get('relay-1', at);
      return metadata.annotations?.['net.unbounded-cloud.io/relay-keys'];
    });
    expect(told).toMatch(/^[0-9a-f]{16}$/);
    const deployment = await clients().deployments.get('relay', at);
    expect(deployment.spec!.template.spec!.containers[0]!.args).toEqual(
      expect.arrayContaining(['--auth=require', '--allowed-keys=/etc/relay/keys/keys']),
    );
    await meshes().delete('default');
    await until('gone', () => gone(() => clients().configMaps.get('relay-keys', at)));
  });

  test('and the secret of links are made for the chart’s relay, kept, and taken away with it', async () => {
    await publish('a');
    const objects = renderChart({ values: { relay: { enabled: true } } }).filter(
      ({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'relay',
    );
    api.apply(yamlOf(objects), '--namespace', NAMESPACE);
    start();
    const { uid } = (await until('the secret', () => clients().secrets.get('relay-links', at))).metadata;
    await until('the list', async () => (await keys()) === `${key('a')}\n`);
    await create({ provider: 'external', external: { endpoint: 'relay.example.com:3478' } });
    await until('told', says('Unknown External'));
    expect((await clients().secrets.get('relay-links', at)).metadata.uid).toBe(uid);
    await clients().secrets.delete('relay-links', at);
    await publish('a', 'b');
    await meshes().mergePatch('default', { metadata: { labels: { a: 'b' } } });
    await until('another secret', () => clients().secrets.get('relay-links', at), 60_000);
    await clients().deployments.delete('relay', { ...at, propagationPolicy: 'Background' });
    await until('gone', () => gone(() => clients().configMaps.get('relay-keys', at)));
    await until('gone', () => gone(() => clients().secrets.get('relay-links', at)));
  });
});

test('without an image nothing is made, and a Mesh of another name does not count', async () => {
  start();
  await create(managed());
  await create(managed(), 'other');
  await until('told', says('False NoImage'));
  await until('told', async () => (await verdict('other'))?.includes('only the Mesh named "default" counts'));
  expect((await clients().deployments.listAll(at)).length).toBe(0);
});
