import {
  annotations,
  gatewayPoolKind,
  labels,
  PROTECTION_FINALIZER,
  siteKind,
  siteNodeSliceKind,
  sitePeeringKind,
} from '@unbounded/crds';
import { clientOf, coreClients, isNotFound } from '@unbounded/kube';
import {
  type ApiServer,
  type AppProcess,
  createNode,
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
  const app = startApp('site-membership', ['--kubeconfig', api.kubeconfig]);
  apps.push(app);
  return app;
};
const nodes = () => coreClients(api.cluster).nodes;
const sites = () => clientOf(api.cluster, siteKind);
const slices = () => clientOf(api.cluster, siteNodeSliceKind);
const pools = () => clientOf(api.cluster, gatewayPoolKind);
const sizes = async () =>
  Object.fromEntries(
    (await slices().listAll()).map(({ metadata, nodes: entries }) => [metadata.name, entries?.length]),
  );
const siteLabel = async (node: string) => (await nodes().get(node)).metadata.labels?.[labels.site];

test('a node is labelled, stands in its slice with key, addresses, blocks and capabilities, and leaves with its address', async () => {
  const { metadata } = await sites().create(siteObject('a'));
  start();
  await createNode(nodes(), {
    name: 'n1',
    internalIPs: ['10.1.0.1', 'fd00::1'],
    podCIDRs: ['100.64.0.0/24'],
    annotations: { [annotations.wireGuardPublicKey]: 'key', [annotations.tunnelProtocols]: 'WireGuard,VXLAN' },
  });
  const slice = await until('slice', () => slices().get('a-0'));
  expect(slice).toMatchObject({ siteName: 'a', sliceIndex: 0, nodeCount: 1 });
  expect(slice.nodes).toEqual([
    {
      name: 'n1',
      wireGuardPublicKey: 'key',
      internalIPs: ['10.1.0.1', 'fd00::1'],
      podCIDRs: ['100.64.0.0/24'],
      tunnelProtocols: ['VXLAN', 'WireGuard'],
    },
  ]);
  expect(slice.metadata.ownerReferences).toEqual([
    {
      apiVersion: 'net.unbounded-cloud.io/v1alpha1',
      kind: 'Site',
      name: 'a',
      uid: metadata.uid,
      controller: true,
      blockOwnerDeletion: true,
    },
  ]);
  await until('label', async () => (await siteLabel('n1')) === 'a');
  const site = await until('status', async () => (await sites().get('a')).status?.nodeCount === 1 && sites().get('a'));
  expect(site.status).toMatchObject({
    nodeCount: 1,
    sliceCount: 1,
    conditions: [{ type: 'NodeCidrsValid', status: 'True' }],
  });
  expect(site.metadata.finalizers).toEqual([PROTECTION_FINALIZER]);
  await nodes().mergePatch(
    'n1',
    { status: { addresses: [{ type: 'InternalIP', address: '10.99.0.1' }] } },
    { subresource: 'status' },
  );
  await until('no label', async () => (await siteLabel('n1')) === undefined);
  await until('no slice', async () => (await slices().listAll()).length === 0);
});

test('the keys of a node that exchanges its key go into its slice together', async () => {
  await sites().create(siteObject('a'));
  start();
  const { wireGuardPublicKey, wireGuardKeyGeneration, wireGuardNextPublicKey } = annotations;
  const announced = { [wireGuardPublicKey]: 'key', [wireGuardNextPublicKey]: 'next' };
  await createNode(nodes(), { name: 'n1', internalIPs: ['10.1.0.1'], annotations: announced });
  const keys = async (): Promise<object | undefined> => {
    const entry = (await slices().listAll())[0]?.nodes?.[0];
    return entry && [entry.wireGuardPublicKey, entry.wireGuardKeyGeneration, entry.wireGuardNextPublicKey];
  };
  await until('the next key', async () => (await keys()) !== undefined);
  expect(await keys()).toEqual(['key', undefined, 'next']);
  const promoted = { [wireGuardPublicKey]: 'next', [wireGuardKeyGeneration]: '1', [wireGuardNextPublicKey]: null };
  await nodes().mergePatch('n1', { metadata: { annotations: promoted } });
  await until('the new key', async () => JSON.stringify(await keys()) === JSON.stringify(['next', 1, undefined]));
});

test('a site that is deleted stays until its last node has gone', async () => {
  await sites().create(siteObject('a'));
  await createNode(nodes(), { name: 'n1', internalIPs: ['10.1.0.1'] });
  start();
  await until('finalizer', async () => (await sites().get('a')).metadata.finalizers?.includes(PROTECTION_FINALIZER));
  await until('label', async () => (await siteLabel('n1')) === 'a');
  await sites().delete('a');
  expect((await sites().get('a')).metadata.deletionTimestamp).toBeDefined();
  expect(await siteLabel('n1')).toBe('a');
  const condition = await until('condition', async () =>
    (await sites().get('a')).status?.conditions?.find(({ type }) => type === 'Deletable'),
  );
  expect(condition).toMatchObject({
    status: 'False',
    reason: 'InUse',
    message: expect.stringContaining('members: n1;'),
  });
  await nodes().delete('n1');
  await until('the site is gone', () =>
    sites()
      .get('a')
      .then(() => false, isNotFound),
  );
});

test('of two sites that claim an address the older keeps it, and the younger says so', async () => {
  await sites().create(siteObject('b', { nodeCidrs: ['10.1.0.0/16'] }));
  await sites().create(siteObject('c', { nodeCidrs: ['10.1.2.0/24'] }));
  await createNode(nodes(), { name: 'n1', internalIPs: ['10.1.2.3'] });
  start();
  await until('label', async () => (await siteLabel('n1')) === 'b');
  const condition = await until('condition', async () =>
    (await sites().get('c')).status?.conditions?.find(({ type }) => type === 'NodeCidrsValid'),
  );
  expect(condition).toMatchObject({ status: 'False', reason: 'NodeCidrsOverlap' });
  expect(condition.message).toContain('10.1.2.0/24 overlaps 10.1.0.0/16 of Site b');
  const { events } = coreClients(api.cluster);
  const event = await until('event', async () =>
    (await events.listAll()).find(({ reason }) => reason === 'NodeCidrsOverlap'),
  );
  expect(event).toMatchObject({ type: 'Warning', note: condition.message, regarding: { kind: 'Site', name: 'c' } });
});

test('a gateway leaves the slices when its pool lists it, and comes back when it no longer can be one', async () => {
  await sites().create(siteObject('a'));
  await pools().create(poolObject('p'));
  const key = { [annotations.wireGuardPublicKey]: 'key' };
  await createNode(nodes(), {
    name: 'gw',
    internalIPs: ['10.1.0.1'],
    externalIPs: ['192.0.2.1'],
    labels: { gateway: 'p' },
    annotations: key,
  });
  await createNode(nodes(), {
    name: 'no-external',
    internalIPs: ['10.1.0.2'],
    labels: { gateway: 'p' },
    annotations: key,
  });
  start();
  await until('both in the slice, as no pool lists them', async () => (await slices().get('a-0')).nodes?.length === 2);
  const status = { nodes: [{ name: 'gw', wireGuardPublicKey: 'key' }], nodeCount: 1 };
  await pools().mergePatch('p', { status }, { subresource: 'status' });
  const slice = await until(
    'the gateway is out',
    async () => (await slices().get('a-0')).nodes?.length === 1 && slices().get('a-0'),
  );
  expect(slice.nodes?.map(({ name }) => name)).toEqual(['no-external']);
  expect((await sites().get('a')).metadata.finalizers).toEqual([PROTECTION_FINALIZER]);
  await nodes().mergePatch('gw', { metadata: { labels: { gateway: null } } });
  await until(
    'in the slice again although the pool still lists it',
    async () => (await slices().get('a-0')).nodes?.length === 2,
  );
});

test('a peering counts sites and nodes and names a site that does not exist', async () => {
  await sites().create(siteObject('a'));
  await createNode(nodes(), { name: 'n1', internalIPs: ['10.1.0.1'] });
  const peerings = clientOf(api.cluster, sitePeeringKind);
  await peerings.create({
    apiVersion: 'net.unbounded-cloud.io/v1alpha1',
    kind: 'SitePeering',
    metadata: { name: 'p' },
    spec: { sites: ['a', 'nowhere'] },
  });
  start();
  const { status } = await until(
    'status',
    async () => (await peerings.get('p')).status?.totalNodeCount === 1 && peerings.get('p'),
  );
  expect(status).toMatchObject({
    peeredSiteCount: 1,
    totalNodeCount: 1,
    conditions: [{ type: 'Accepted', status: 'False', reason: 'SiteNotFound' }],
  });
});

test('1,250 nodes make slices of 500, 500 and 250, and 600 of them two', async () => {
  await sites().create(siteObject('a', { nodeCidrs: ['10.0.0.0/8'] }));
  const names = Array.from({ length: 1250 }, (_, index) => `n${String(index).padStart(4, '0')}`);
  const inBatches = async (all: readonly string[], work: (name: string) => Promise<unknown>) => {
    for (let at = 0; at < all.length; at += 50) await Promise.all(all.slice(at, at + 50).map(work));
  };
  await inBatches(names, (name) => {
    const index = Number(name.slice(1));
    return createNode(nodes(), { name, internalIPs: [`10.1.${index >> 8}.${index & 255}`] });
  });
  start();
  await until(
    'three slices',
    async () => JSON.stringify(await sizes()) === JSON.stringify({ 'a-0': 500, 'a-1': 500, 'a-2': 250 }),
    30_000,
  );
  expect((await slices().get('a-1')).nodes?.[0]?.name).toBe('n0500');
  await inBatches(names.slice(600), (name) => nodes().delete(name));
  await until(
    'two slices',
    async () => JSON.stringify(await sizes()) === JSON.stringify({ 'a-0': 500, 'a-1': 100 }),
    30_000,
  );
  await until('status', async () => (await sites().get('a')).status?.sliceCount === 2);
});
