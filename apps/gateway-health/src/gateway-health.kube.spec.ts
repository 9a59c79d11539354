import {
  annotations,
  GATEWAY_TAINT,
  gatewayPoolKind,
  gatewayPoolNodeKind,
  gatewayPoolPeeringKind,
  labels,
  PROTECTION_FINALIZER,
  siteGatewayPoolAssignmentKind,
  siteKind,
} from '@unbounded/crds';
import { clientOf, coreClients, isNotFound } from '@unbounded/kube';
import {
  type ApiServer,
  type AppProcess,
  createNode,
  type NodeInit,
  poolObject,
  resetCluster,
  siteObject,
  startApiServer,
  startApp,
  until,
} from '@unbounded/testing';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';

let api: ApiServer;
const apps: AppProcess[] = [];
beforeAll(async () => {
  api = await startApiServer();
});
beforeEach(() => resetCluster(api.cluster));
afterEach(async () => {
  for (const app of apps.splice(0)) await app.stop('SIGKILL');
});
afterAll(() => api?.stop());

const start = (): AppProcess => {
  const app = startApp('gateway-health', ['--kubeconfig', api.kubeconfig]);
  apps.push(app);
  return app;
};
const apiVersion = 'net.unbounded-cloud.io/v1alpha1';
const nodes = () => coreClients(api.cluster).nodes;
const sites = () => clientOf(api.cluster, siteKind);
const pools = () => clientOf(api.cluster, gatewayPoolKind);
const poolNodes = () => clientOf(api.cluster, gatewayPoolNodeKind);
const gateway = (name: string, extra: Partial<NodeInit> = {}) =>
  createNode(nodes(), {
    name,
    internalIPs: ['10.1.0.1'],
    externalIPs: ['192.0.2.1'],
    labels: { gateway: 'p' },
    annotations: { [annotations.wireGuardPublicKey]: `key-${name}` },
    ...extra,
  });
const members = async (pool: string) => (await pools().get(pool)).status?.nodes?.map(({ name }) => name) ?? [];
const port = async (node: string) => (await nodes().get(node)).metadata.annotations?.[annotations.wireGuardPort];
const taints = async (node: string) =>
  (await nodes().get(node)).spec?.taints?.filter(({ key }) => key === GATEWAY_TAINT.key) ?? []; // the API server adds not-ready

test('an eligible node becomes a gateway with all that belongs to it, and loses all of it with the role', async () => {
  await sites().create(siteObject('a'));
  await pools().create(poolObject('p'));
  await clientOf(api.cluster, siteGatewayPoolAssignmentKind).create({
    apiVersion,
    kind: 'SiteGatewayPoolAssignment',
    metadata: { name: 'a-p' },
    spec: { sites: ['a'], gatewayPools: ['p'] },
  });
  start();
  await gateway('gw', { podCIDRs: ['100.64.3.0/24', 'fd00:64::/64'] });
  await until('taint', async () => (await taints('gw')).length > 0);
  expect((await pools().get('p')).status).toMatchObject({
    nodeCount: 1,
    connectedSites: ['a'],
    reachableSites: ['a'],
    nodes: [
      {
        name: 'gw',
        siteName: 'a',
        internalIPs: ['10.1.0.1'],
        externalIPs: ['192.0.2.1'],
        healthEndpoints: ['100.64.3.1', 'fd00:64::1'],
        wireGuardPublicKey: 'key-gw',
        gatewayWireguardPort: 51821,
        podCIDRs: ['100.64.3.0/24', 'fd00:64::/64'],
      },
    ],
  });
  expect(await taints('gw')).toEqual([GATEWAY_TAINT]);
  expect(await port('gw')).toBe('51821');
  const object = await until('GatewayPoolNode', () => poolNodes().get('gw'));
  expect(object.spec).toEqual({ nodeName: 'gw', gatewayPool: 'p', site: 'a' });
  expect(object.metadata.labels).toEqual({ [labels.gatewayPool]: 'p', [labels.node]: 'gw', [labels.site]: 'a' });
  expect(object.metadata.ownerReferences?.map(({ kind, controller }) => `${kind} ${controller}`)).toEqual([
    'Node true',
    'GatewayPool false',
  ]);
  expect((await pools().get('p')).metadata.finalizers).toEqual([PROTECTION_FINALIZER]);

  await nodes().mergePatch('gw', { metadata: { labels: { gateway: null } } });
  await until('no taint', async () => (await taints('gw')).length === 0);
  expect(await port('gw')).toBeUndefined();
  await until('no GatewayPoolNode', () =>
    poolNodes()
      .get('gw')
      .then(() => false, isNotFound),
  );
  await until('no finalizer', async () => (await pools().get('p')).metadata.finalizers === undefined);
  expect(await members('p')).toEqual([]);
});

test('a gateway that exchanges its key keeps its port, and its pool lists both keys', async () => {
  await sites().create(siteObject('a'));
  await pools().create(poolObject('p'));
  start();
  await gateway('gw');
  await until('a port', () => port('gw'));
  const { wireGuardKeyGeneration, wireGuardNextPublicKey } = annotations;
  const rotating = { [wireGuardKeyGeneration]: '3', [wireGuardNextPublicKey]: 'next' };
  await nodes().mergePatch('gw', { metadata: { annotations: rotating } });
  const listed = async () => (await pools().get('p')).status?.nodes?.[0];
  await until('the next key', async () => (await listed())?.wireGuardNextPublicKey === 'next');
  expect(await listed()).toMatchObject({
    wireGuardPublicKey: 'key-gw',
    wireGuardKeyGeneration: 3,
    gatewayWireguardPort: 51821,
  });
});

test('an External pool says which node lacks an address; an Internal one takes it', async () => {
  await pools().create(poolObject('p'));
  await gateway('gw', { externalIPs: [] });
  start();
  const condition = await until('condition', async () =>
    (await pools().get('p')).status?.conditions?.find(({ type }) => type === 'NodesEligible'),
  );
  expect(condition).toMatchObject({ status: 'False', reason: 'NoExternalIP' });
  expect(condition.message).toBe('gw has no ExternalIP, which a pool of type External needs');
  expect(await members('p')).toEqual([]);
  await pools().mergePatch('p', { spec: { type: 'Internal' } });
  await until('member', async () => (await members('p')).includes('gw'));
});

test('a pool that is deleted says which gateway keeps it, and goes with it', async () => {
  await pools().create(poolObject('p'));
  await gateway('gw');
  start();
  const condition = async (wanted: string) =>
    (await pools().get('p')).status?.conditions?.find(({ type }) => type === wanted);
  const reporting = await until(
    'members',
    async () => (await members('p')).includes('gw') && condition('GatewaysReporting'),
  );
  expect(reporting).toMatchObject({ status: 'Unknown', reason: 'NotYetReported' });
  await until('finalizer', async () => (await pools().get('p')).metadata.finalizers?.includes(PROTECTION_FINALIZER));
  await pools().delete('p');
  const inUse = await until('condition', () => condition('Deletable'));
  expect(inUse).toMatchObject({ status: 'False', reason: 'InUse', message: expect.stringContaining('members: gw;') });
  await nodes().mergePatch('gw', { metadata: { labels: { gateway: null } } });
  await until('the pool is gone', () =>
    pools()
      .get('p')
      .then(() => false, isNotFound),
  );
});

test('a node that two pools select is in the one whose name sorts first', async () => {
  await pools().create(poolObject('q', { nodeSelector: { gateway: 'p' } }));
  await gateway('gw');
  start();
  await until('in q', async () => (await members('q')).includes('gw'));
  await pools().create(poolObject('p'));
  await until('in p', async () => (await members('p')).includes('gw') && (await members('q')).length === 0);
  expect(
    (await until('object', async () => (await poolNodes().get('gw')).spec.gatewayPool === 'p' && poolNodes().get('gw')))
      .metadata.labels?.[labels.gatewayPool],
  ).toBe('p');
});

test('ports are unique over pools and survive a restart; a lost one is given again', async () => {
  await pools().create(poolObject('p'));
  await pools().create(poolObject('q'));
  await gateway('g1');
  await gateway('g2', { labels: { gateway: 'q' } });
  const first = start();
  await until('ports', async () => (await port('g1')) && (await port('g2')));
  const before = [await port('g1'), await port('g2')];
  expect(new Set(before)).toEqual(new Set(['51821', '51822']));
  await first.stop();
  await nodes().mergePatch('g1', { metadata: { annotations: { [annotations.wireGuardPort]: '51822' } } });
  await gateway('g0');
  start();
  await until('a port for the new one', () => port('g0'));
  await until('repaired', async () => (await port('g1')) === before[0]);
  expect([await port('g0'), await port('g1'), await port('g2')]).toEqual(['51823', ...before]);
});

test('sites beyond peered pools are reachable; a disabled peering counts as none', async () => {
  for (const [index, name] of ['a', 'b'].entries())
    await sites().create(siteObject(name, { nodeCidrs: [`10.${index}.0.0/16`] }));
  for (const name of ['p', 'q']) await pools().create(poolObject(name));
  for (const [site, pool] of [
    ['a', 'p'],
    ['b', 'q'],
  ] as const) {
    await clientOf(api.cluster, siteGatewayPoolAssignmentKind).create({
      apiVersion,
      kind: 'SiteGatewayPoolAssignment',
      metadata: { name: `${site}-${pool}` },
      spec: { sites: [site], gatewayPools: [pool] },
    });
  }
  const peerings = clientOf(api.cluster, gatewayPoolPeeringKind);
  await peerings.create({
    apiVersion,
    kind: 'GatewayPoolPeering',
    metadata: { name: 'pq' },
    spec: { gatewayPools: ['p', 'q', 'none'] },
  });
  start();
  await until('reachable', async () => (await pools().get('p')).status?.reachableSites?.join() === 'a,b');
  expect((await pools().get('p')).status?.connectedSites).toEqual(['a']);
  expect(await until('condition', async () => (await peerings.get('pq')).status?.conditions?.[0])).toMatchObject({
    type: 'Accepted',
    status: 'False',
    reason: 'NotFound',
  });
  await peerings.mergePatch('pq', { spec: { enabled: false } });
  await until('no longer reachable', async () => (await pools().get('p')).status?.reachableSites?.join() === 'a');
});
