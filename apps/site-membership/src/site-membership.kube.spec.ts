import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
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
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { addressOf, inBatches, nodeNames } from './many-nodes.testdata.ts';

let api: ApiServer;
/** With the program's own rights, and no other. */
let kubeconfig: string;
const apps: AppProcess[] = [];
beforeAll(async () => {
  api = await borrowApiServer();
  await resetCluster(api.cluster);
  await installAccessRules(api);
  kubeconfig = await kubeconfigOf(api, 'site-membership');
});
beforeEach(() => resetCluster(api.cluster));
afterEach(async () => {
  for (const app of apps.splice(0)) await app.stop('SIGKILL');
});
afterAll(() => api?.stop());

const start = (): AppProcess => {
  const app = startApp('site-membership', ['--kubeconfig', kubeconfig]);
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
  await sites().create(siteObject('a', { nodeCidrs: ['10.1.0.0/16', 'fd00::/64'] }));
  start();
  await createNode(nodes(), {
    name: 'n1',
    internalIPs: ['10.1.0.1', 'fd00::1'],
    podCIDRs: ['100.64.0.0/24'],
    annotations: {
      [annotations.wireGuardPublicKey]: publicKeyFor('key'),
      [annotations.tunnelProtocols]: 'WireGuard,VXLAN',
    },
  });
  const slice = await until('slice', () => slices().get('a-0'));
  expect(slice).toMatchObject({ siteName: 'a', sliceIndex: 0, nodeCount: 1 });
  expect(slice.nodes).toEqual([
    {
      name: 'n1',
      wireGuardPublicKey: publicKeyFor('key'),
      internalIPs: ['10.1.0.1', 'fd00::1'],
      podCIDRs: ['100.64.0.0/24'],
      tunnelProtocols: ['VXLAN', 'WireGuard'],
    },
  ]);
  expect(slice.metadata.ownerReferences).toBeUndefined();
  await until('label', async () => (await siteLabel('n1')) === 'a');
  const site = await until('status', async () => (await sites().get('a')).status?.nodeCount === 1 && sites().get('a'));
  expect(site.status).toMatchObject({
    nodeCount: 1,
    sliceCount: 1,
    conditions: [
      { type: 'NodeCidrsValid', status: 'True' },
      { type: 'NodesAccepted', status: 'True' },
    ],
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
  const announced = { [wireGuardPublicKey]: publicKeyFor('key'), [wireGuardNextPublicKey]: publicKeyFor('next') };
  await createNode(nodes(), { name: 'n1', internalIPs: ['10.1.0.1'], annotations: announced });
  const keys = async (): Promise<object | undefined> => {
    const entry = (await slices().listAll())[0]?.nodes?.[0];
    return entry && [entry.wireGuardPublicKey, entry.wireGuardKeyGeneration, entry.wireGuardNextPublicKey];
  };
  await until('the next key', async () => (await keys()) !== undefined);
  expect(await keys()).toEqual([publicKeyFor('key'), undefined, publicKeyFor('next')]);
  const promoted = {
    [wireGuardPublicKey]: publicKeyFor('next'),
    [wireGuardKeyGeneration]: '1',
    [wireGuardNextPublicKey]: null,
  };
  await nodes().mergePatch('n1', { metadata: { annotations: promoted } });
  await until(
    'the new key',
    async () => JSON.stringify(await keys()) === JSON.stringify([publicKeyFor('next'), 1, undefined]),
  );
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
  const key = (name: string) => ({ [annotations.wireGuardPublicKey]: publicKeyFor(name) });
  await createNode(nodes(), {
    name: 'gw',
    internalIPs: ['10.1.0.1'],
    externalIPs: ['192.0.2.1'],
    labels: { gateway: 'p' },
    annotations: key('gw'),
  });
  await createNode(nodes(), {
    name: 'no-external',
    internalIPs: ['10.1.0.2'],
    labels: { gateway: 'p' },
    annotations: key('no-external'),
  });
  start();
  await until('both in the slice, as no pool lists them', async () => (await slices().get('a-0')).nodes?.length === 2);
  const status = { nodes: [{ name: 'gw', wireGuardPublicKey: publicKeyFor('gw') }], nodeCount: 1 };
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

const nodeCondition = async (node: string) =>
  (await nodes().get(node)).status?.conditions?.find(({ type }) => type === 'UnboundedNodeAccepted');
const siteCondition = async (site: string, type: string) =>
  (await sites().get(site)).status?.conditions?.find((entry) => entry.type === type);
const events = () => coreClients(api.cluster).events;

test.each<[string, Partial<Parameters<typeof createNode>[1]>, string]>([
  [
    'a key of 65 characters',
    { annotations: { [annotations.wireGuardPublicKey]: 'A'.repeat(65) } },
    'InvalidWireGuardKey',
  ],
  [
    'a protocol of 40 characters',
    { annotations: { [annotations.tunnelProtocols]: 'x'.repeat(40) } },
    'UnknownTunnelProtocol',
  ],
  [
    '40 internal addresses',
    { internalIPs: Array.from({ length: 40 }, (_, index) => `10.1.9.${index + 1}`) },
    'TooManyAddresses',
  ],
  ['an address that is not its own', { internalIPs: ['10.1.9.1', '8.8.8.8'] }, 'AddressOutsideSite'],
  [
    'an external address of another Site’s pods, of a gateway',
    { externalIPs: ['100.65.0.9'], labels: { gateway: 'p' } },
    'ExternalAddressInSite',
  ],
  ['a block of another Site', { podCIDRs: ['100.65.3.0/24'] }, 'PodCIDRsOutsideSite'],
])('%s: the node, its Site and an Event say so, and all others are listed and labelled', async (_, init, reason) => {
  await sites().create(siteObject('a'));
  await sites().create(
    siteObject('b', { nodeCidrs: ['10.2.0.0/16'], podCidrAssignments: [{ cidrBlocks: ['100.65.0.0/16'] }] }),
  );
  await pools().create(poolObject('p'));
  const app = start();
  await createNode(nodes(), { name: 'bad', internalIPs: ['10.1.9.1'], ...init });
  await createNode(nodes(), { name: 'good', internalIPs: ['10.1.0.1'] });
  await createNode(nodes(), { name: 'other', internalIPs: ['10.2.0.1'] });
  await until('all are listed', async () => JSON.stringify(await sizes()) === JSON.stringify({ 'a-0': 2, 'b-0': 1 }));
  const condition = await until('the condition', () => nodeCondition('bad'));
  expect(condition).toMatchObject({ status: 'False', reason });
  const said = `1 of 2 nodes have rejected facts: bad (${reason})`;
  const ofSite = await until('the Site', async () => {
    const found = await siteCondition('a', 'NodesAccepted');
    return found?.message?.includes(said) && found;
  });
  expect(ofSite).toMatchObject({ status: 'False', reason });
  expect(await until('the other Site', () => siteCondition('b', 'NodesAccepted'))).toMatchObject({ status: 'True' });
  const event = await until('an Event', async () =>
    (await events().listAll()).find((entry) => entry.reason === reason && entry.regarding?.kind === 'Node'),
  );
  expect(event).toMatchObject({ type: 'Warning', regarding: { kind: 'Node', name: 'bad' } });
  expect((await app.health('/metrics')).body).toContain(`unbounded_net_controller_node_problems{reason="${reason}"} 1`);
  expect(await nodeCondition('good')).toBeUndefined();
});

test('a newcomer that announces the key of a listed node is listed without it, until that node drops the key', async () => {
  await sites().create(siteObject('a'));
  const key = { [annotations.wireGuardPublicKey]: publicKeyFor('victim') };
  await createNode(nodes(), { name: 's1-g1', internalIPs: ['10.1.0.1'], annotations: key });
  start();
  const listed = async (name: string) => (await slices().listAll())[0]?.nodes?.find((entry) => entry.name === name);
  await until('the victim is listed', async () => (await listed('s1-g1'))?.wireGuardPublicKey);
  await createNode(nodes(), { name: 'a-evil', internalIPs: ['10.1.0.9'], annotations: key });
  const condition = await until('the condition', () => nodeCondition('a-evil'));
  expect(condition).toMatchObject({ status: 'False', reason: 'WireGuardKeyTaken' });
  expect((await listed('s1-g1'))?.wireGuardPublicKey).toBe(publicKeyFor('victim'));
  expect(await until('it is listed', () => listed('a-evil'))).toMatchObject({ internalIPs: ['10.1.0.9'] });
  expect((await listed('a-evil'))?.wireGuardPublicKey).toBeUndefined();
  expect(await nodeCondition('s1-g1')).toBeUndefined();
  await nodes().mergePatch('s1-g1', {
    metadata: { annotations: { [annotations.wireGuardPublicKey]: publicKeyFor('new') } },
  });
  await until('the key is free', async () => (await listed('a-evil'))?.wireGuardPublicKey === publicKeyFor('victim'));
  await until('the condition turns good', async () => (await nodeCondition('a-evil'))?.status === 'True');
});

test('a node that changes its key too often is told, its neighbour is listed at once, and its last key in the end', async () => {
  await sites().create(siteObject('a'));
  for (const [name, ip] of [
    ['loud', '10.1.0.1'],
    ['quiet', '10.1.0.2'],
  ] as const)
    await createNode(nodes(), {
      name,
      internalIPs: [ip],
      annotations: { [annotations.wireGuardPublicKey]: publicKeyFor(name) },
    });
  start();
  const listed = async (name: string) =>
    (await slices().listAll())[0]?.nodes?.find((entry) => entry.name === name)?.wireGuardPublicKey;
  const announce = async (name: string, seed: string): Promise<string> => {
    const key = publicKeyFor(seed);
    await nodes().mergePatch(name, { metadata: { annotations: { [annotations.wireGuardPublicKey]: key } } });
    return key;
  };
  await until('the first key', async () => (await listed('loud')) === publicKeyFor('loud'));
  let last = '';
  for (let change = 1; change <= 5; change++) {
    last = await announce('loud', `loud ${change}`);
    await until(`change ${change}`, async () => (await listed('loud')) === last);
  }
  const late = await announce('loud', 'loud 6');
  const condition = await until('the condition', () => nodeCondition('loud'));
  expect(condition).toMatchObject({ status: 'False', reason: 'FactsDamped' });
  const told = async () =>
    (await coreClients(api.cluster).events.listAll()).filter(
      ({ reason, regarding }) => reason === 'FactsDamped' && regarding?.kind === 'Node',
    );
  await until('the Event', async () => (await told()).length > 0);
  const other = await announce('quiet', 'quiet 1');
  await until('the neighbour', async () => (await listed('quiet')) === other);
  await until('the last key', async () => (await listed('loud')) === late);
  expect(await told()).toHaveLength(1);
  expect(await nodeCondition('quiet')).toBeUndefined();
});

test('a policy that refuses one slice, one status and one label stops no other, and they follow when it goes', async () => {
  api.apply(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: { name: refuse-one }
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - { apiGroups: [net.unbounded-cloud.io], apiVersions: ['*'], resources: [sitenodeslices, sites/status], operations: [CREATE, UPDATE] }
      - { apiGroups: [''], apiVersions: ['*'], resources: [nodes], operations: [UPDATE] }
  validations:
    - expression: "!(object.metadata.name in ['a', 'a-0', 'n1'])"
      message: not this one
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: { name: refuse-one }
spec: { policyName: refuse-one, validationActions: [Deny] }
`);
  try {
    await sites().create(siteObject('a'));
    await sites().create(siteObject('b', { nodeCidrs: ['10.2.0.0/16'] }));
    await createNode(nodes(), { name: 'n1', internalIPs: ['10.1.0.1'] });
    await createNode(nodes(), { name: 'n2', internalIPs: ['10.2.0.1'] });
    await until('the policy is in force', () =>
      nodes()
        .mergePatch('n1', { metadata: { annotations: { x: String(Math.random()) } } })
        .then(
          () => false,
          () => true,
        ),
    );
    const app = start();
    await until('the other slice', async () => (await sizes())['b-0'] === 1);
    await until('the other label', async () => (await siteLabel('n2')) === 'b');
    await until('the other status', async () => (await sites().get('b')).status?.nodeCount === 1);
    await until('the other finalizer', async () =>
      (await sites().get('b')).metadata.finalizers?.includes(PROTECTION_FINALIZER),
    );
    expect(await sizes()).toEqual({ 'b-0': 1 });
    const refused = await until('Events', async () => {
      const all = (await events().listAll()).filter(({ reason }) => reason === 'WriteRefused');
      return all.length >= 3 && all;
    });
    expect(new Set(refused.map(({ regarding }) => regarding?.name))).toEqual(new Set(['a', 'a-0', 'n1']));
    expect(refused[0]!.note).toContain('not this one');
    expect((await app.health('/metrics')).body).toMatch(
      /unbounded_net_controller_refused_writes_total\{kind="Site"\} [1-9]/,
    );
  } finally {
    api.kubectl('delete', 'validatingadmissionpolicybinding,validatingadmissionpolicy', 'refuse-one');
  }
  await until(
    'the refused ones follow',
    async () => (await sizes())['a-0'] === 1 && (await siteLabel('n1')) === 'a',
    40_000,
  );
});

test('a webhook for Nodes that hangs holds up labels, and no slice', async () => {
  // Takes connections, and answers none.
  const sockets: Socket[] = [];
  const silent = createServer((socket) => void sockets.push(socket)).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  api.apply(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: { name: silent }
webhooks:
  - name: silent.example.com
    clientConfig: { url: 'https://127.0.0.1:${port}/' }
    rules: [{ apiGroups: [''], apiVersions: ['*'], resources: [nodes], operations: [UPDATE] }]
    matchConditions: [{ name: ours, expression: "request.userInfo.username.endsWith(':site-membership')" }]
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Ignore
    timeoutSeconds: 30
`);
  try {
    await sites().create(siteObject('a'));
    const names = nodeNames(9); // one more than are written at a time
    for (const name of names) await createNode(nodes(), { name, internalIPs: [addressOf(name)] });
    const asked = once(silent, 'connection');
    start();
    await until('a slice', async () => (await sizes())['a-0'] === 9);
    await asked;
    const wireGuardPublicKey = publicKeyFor('later');
    await nodes().mergePatch(names[0]!, {
      metadata: { annotations: { [annotations.wireGuardPublicKey]: wireGuardPublicKey } },
    });
    await until('its key', async () =>
      (await slices().get('a-0')).nodes?.some((entry) => entry.wireGuardPublicKey === wireGuardPublicKey),
    );
    expect(await Promise.all(names.map(siteLabel))).toEqual(names.map(() => undefined));
  } finally {
    api.kubectl('delete', 'validatingwebhookconfiguration', 'silent');
    silent.close();
    for (const socket of sockets) socket.destroy();
  }
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

test('620 nodes make slices of 500 and 120, and 450 of them one', async () => {
  await sites().create(siteObject('a', { nodeCidrs: ['10.0.0.0/8'] }));
  const names = nodeNames(620);
  await inBatches(names, (name) => createNode(nodes(), { name, internalIPs: [addressOf(name)] }));
  start();
  await until(
    'two slices',
    async () => JSON.stringify(await sizes()) === JSON.stringify({ 'a-0': 500, 'a-1': 120 }),
    30_000,
  );
  expect((await slices().get('a-1')).nodes?.[0]?.name).toBe('n0500');
  await inBatches(names.slice(450), (name) => nodes().delete(name));
  await until('one slice', async () => JSON.stringify(await sizes()) === JSON.stringify({ 'a-0': 450 }), 30_000);
  await until('status', async () => (await sites().get('a')).status?.sliceCount === 1);
});

test('a slice lists the locator of its Site’s block, told at once when the block comes; another’s is told on the Node', async () => {
  await sites().create(siteObject('a'));
  start();
  const locator = 'fd53:ab:cd:1::/64';
  const note = (l2Locator: string) => ({ [annotations.l2Locator]: l2Locator });
  await createNode(nodes(), { name: 'n1', internalIPs: ['10.1.0.1'], annotations: note(locator) });
  const listed = async () =>
    Object.fromEntries(((await slices().get('a-0')).nodes ?? []).map((entry) => [entry.name, entry.l2Locator]));
  await until('slice', () => slices().get('a-0'));
  expect(await listed()).toEqual({ n1: undefined });
  await sites().mergePatch('a', { status: { l2LocatorBlock: 'fd53:ab:cd::/52' } }, { subresource: 'status' });
  await until('its locator', async () => (await listed())['n1'] === locator);
  await createNode(nodes(), { name: 'n0', internalIPs: ['10.1.0.2'], annotations: note(locator) });
  await createNode(nodes(), { name: 'n2', internalIPs: ['10.1.0.3'], annotations: note('fd53:ab:cd:1001::/64') });
  const conditionOf = async (name: string) =>
    (await nodes().get(name)).status?.conditions?.find(({ type }) => type === 'UnboundedNodeAccepted')?.message;
  expect(await until('n0', () => conditionOf('n0'))).toContain(`${locator} is the locator of node n1`);
  expect(await until('n2', () => conditionOf('n2'))).toContain(
    'fd53:ab:cd:1001::/64 is not a locator of fd53:ab:cd::/52',
  );
  expect(await listed()).toEqual({ n0: undefined, n1: locator, n2: undefined });
});
