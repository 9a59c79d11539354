import {
  annotations,
  GATEWAY_TAINT,
  gatewayPoolKind,
  gatewayPoolNodeKind,
  gatewayPoolPeeringKind,
  labels,
  meshKind,
  nodeConditions,
  PROTECTION_FINALIZER,
  siteGatewayPoolAssignmentKind,
  siteKind,
  type SiteNode,
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
  type NodeInit,
  poolObject,
  publicKeyFor,
  resetCluster,
  siteObject,
  startApp,
  until,
} from '@unbounded/testing';
import { startDnsServer } from '@unbounded/testing/dns-server';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';

let api: ApiServer;
/** With the program's own rights, and no other. */
let kubeconfig: string;
const apps: AppProcess[] = [];
beforeAll(async () => {
  api = await borrowApiServer();
  await resetCluster(api.cluster);
  await installAccessRules(api);
  kubeconfig = await kubeconfigOf(api, 'gateway-health');
});
beforeEach(() => resetCluster(api.cluster));
afterEach(async () => {
  for (const app of apps.splice(0)) await app.stop('SIGKILL');
});
afterAll(() => api?.stop());

const start = (...args: string[]): AppProcess => {
  const app = startApp('gateway-health', ['--kubeconfig', kubeconfig, ...args]);
  apps.push(app);
  return app;
};
const apiVersion = 'net.unbounded-cloud.io/v1alpha1';
const nodes = () => coreClients(api.cluster).nodes;
const sites = () => clientOf(api.cluster, siteKind);
const pools = () => clientOf(api.cluster, gatewayPoolKind);
const poolNodes = () => clientOf(api.cluster, gatewayPoolNodeKind);
/** Each with addresses of its own. */
let made = 0;
const gateway = (name: string, extra: Partial<NodeInit> = {}) => {
  made++;
  return createNode(nodes(), {
    name,
    internalIPs: [`10.1.0.${made}`],
    externalIPs: [`192.0.2.${made}`],
    labels: { gateway: 'p' },
    ...extra,
    annotations: { [annotations.wireGuardPublicKey]: publicKeyFor(name), ...extra.annotations },
  });
};
const poolCondition = async (pool: string, type: string) =>
  (await pools().get(pool)).status?.conditions?.find((entry) => entry.type === type);
/** As site-membership does. */
const listInSlice = (node: SiteNode) =>
  clientOf(api.cluster, siteNodeSliceKind).create({
    ...{ apiVersion, kind: 'SiteNodeSlice', metadata: { name: 'a-0' } },
    ...{ siteName: 'a', sliceIndex: 0, nodeCount: 1, nodes: [node] },
  });
const members = async (pool: string) => (await pools().get(pool)).status?.nodes?.map(({ name }) => name) ?? [];
const port = async (node: string) => (await nodes().get(node)).metadata.annotations?.[annotations.wireGuardPort];
const taints = async (node: string) =>
  (await nodes().get(node)).spec?.taints?.filter(({ key }) => key === GATEWAY_TAINT.key) ?? []; // the API server adds not-ready

test('an eligible node becomes a gateway with all that belongs to it, and loses all of it with the role', async () => {
  await sites().create(siteObject('a', { podCidrAssignments: [{ cidrBlocks: ['100.64.0.0/16', 'fd00:64::/48'] }] }));
  await pools().create(poolObject('p'));
  await clientOf(api.cluster, siteGatewayPoolAssignmentKind).create({
    apiVersion,
    kind: 'SiteGatewayPoolAssignment',
    metadata: { name: 'a-p' },
    spec: { sites: ['a'], gatewayPools: ['p'] },
  });
  start();
  await gateway('gw', {
    internalIPs: ['10.1.0.1'],
    externalIPs: ['192.0.2.1'],
    podCIDRs: ['100.64.3.0/24', 'fd00:64::/64'],
    annotations: { [annotations.features]: 'node-addresses,later' },
  });
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
        wireGuardPublicKey: publicKeyFor('gw'),
        gatewayWireguardPort: 51821,
        podCIDRs: ['100.64.3.0/24', 'fd00:64::/64'],
        features: ['node-addresses'],
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
  // Until then it would be cut off.
  await listInSlice({ name: 'gw', internalIPs: ['10.1.0.1'], podCIDRs: ['100.64.3.0/24', 'fd00:64::/64'] });
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
  const rotating = { [wireGuardKeyGeneration]: '3', [wireGuardNextPublicKey]: publicKeyFor('next') };
  await nodes().mergePatch('gw', { metadata: { annotations: rotating } });
  const listed = async () => (await pools().get('p')).status?.nodes?.[0];
  await until('the next key', async () => (await listed())?.wireGuardNextPublicKey === publicKeyFor('next'));
  expect(await listed()).toMatchObject({
    wireGuardPublicKey: publicKeyFor('gw'),
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
  expect(condition.message).toBe(
    'gw has no external address, which a pool of type External needs: kubectl annotate node NODE net.unbounded-cloud.io/external-address=ADDRESS-OR-DNS-NAME',
  );
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
  expect(reporting).toMatchObject({ status: 'Unknown', reason: 'AwaitingFirstReport' });
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

test('a gateway that leaves its Site without another one leaves it in its object, too; labels of others stay', async () => {
  await sites().create(siteObject('a'));
  await pools().create(poolObject('p'));
  await gateway('gw', { internalIPs: ['10.1.0.1'] });
  start();
  await until('in the Site', async () => (await poolNodes().get('gw')).spec.site === 'a');
  await poolNodes().mergePatch('gw', { metadata: { labels: { 'example.com/rack': '7' } } });
  await sites().mergePatch('a', { spec: { nodeCidrs: ['10.99.0.0/16'] } });
  const left = await until('in none', async () => {
    const object = await poolNodes().get('gw');
    return object.spec.site === undefined && object;
  });
  expect(left.metadata.labels).toEqual({
    [labels.gatewayPool]: 'p',
    [labels.node]: 'gw',
    'example.com/rack': '7',
  });
});

test('what a kubelet writes as the reason why it does not forward holds up nobody else of its pool', async () => {
  await pools().create(poolObject('p'));
  await gateway('gw');
  start();
  await until('a gateway', async () => (await members('p')).includes('gw'));
  const condition = { type: nodeConditions.forwarding, status: 'False', reason: 'x'.repeat(40_000) };
  await nodes().mergePatch('gw', { status: { conditions: [condition] } }, { subresource: 'status' });
  await gateway('next');
  await until('the next one', async () => (await members('p')).includes('next'));
  const said = await until('it is said', async () => {
    const current = await poolCondition('p', 'GatewaysForwarding');
    return current?.status === 'False' && current;
  });
  expect(said.message).toBe('1 of 2 gateways do not forward: gw (unknown reason)');
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

/** Site a: LAN 10.1.0.0/16, pods 100.65.0.0/16. Site b: 10.2.0.0/16 and 100.66.0.0/16. */
const createTwoSites = async () => {
  for (const [index, name] of ['a', 'b'].entries()) {
    const podCidrAssignments = [{ cidrBlocks: [`100.${65 + index}.0.0/16`] }];
    await sites().create(siteObject(name, { nodeCidrs: [`10.${1 + index}.0.0/16`], podCidrAssignments }));
  }
};

test('sites beyond peered pools are reachable; a disabled peering counts as none', async () => {
  await createTwoSites();
  for (const [index, name] of ['p', 'q'].entries()) {
    await pools().create(poolObject(name));
    const podCIDRs = [`100.${65 + index}.1.0/24`];
    await gateway(`${name}-gw`, { internalIPs: [`10.${1 + index}.0.1`], podCIDRs, labels: { gateway: name } });
  }
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

test('a pool is not connected with an assigned Site that its gateways cannot meet, until a SitePeering or a relay joins them', async () => {
  await createTwoSites();
  await pools().create(poolObject('p', { type: 'Internal' }));
  await clientOf(api.cluster, siteGatewayPoolAssignmentKind).create({
    apiVersion,
    kind: 'SiteGatewayPoolAssignment',
    metadata: { name: 'both' },
    spec: { sites: ['a', 'b'], gatewayPools: ['p'] },
  });
  await gateway('gw', { internalIPs: ['10.1.0.1'], externalIPs: [], podCIDRs: ['100.65.1.0/24'] });
  start();
  const listed = async () => {
    const { connectedSites, reachableSites } = (await pools().get('p')).status ?? {};
    return `${connectedSites?.join()} ${reachableSites?.join()}`;
  };
  await until('its own Site', async () => (await members('p')).includes('gw') && (await listed()) === 'a a');
  const peerings = clientOf(api.cluster, sitePeeringKind);
  await peerings.create({ apiVersion, kind: 'SitePeering', metadata: { name: 'ab' }, spec: { sites: ['a', 'b'] } });
  await until('a common network', async () => (await listed()) === 'a,b a,b');
  await peerings.delete('ab');
  await until('its own Site again', async () => (await listed()) === 'a a');
  const relay = { provider: 'external', external: { endpoint: 'relay.example.com:3478' } } as const;
  const meshes = clientOf(api.cluster, meshKind);
  await meshes.create({ apiVersion, kind: 'Mesh', metadata: { name: 'default' }, spec: { relay } });
  await until('a relay', async () => (await listed()) === 'a,b a,b');
  await meshes.mergePatch('default', { spec: { relay: { mode: 'never' } } });
  await until('no relay', async () => (await listed()) === 'a a');
  expect((await pools().get('p')).status?.nodeCount).toBe(1);
});

test('the annotation external-address makes a gateway of a node without ExternalIP, and follows its DNS name', async () => {
  const dns = await startDnsServer();
  try {
    dns.set('gw.example.com', ['198.51.100.2', '198.51.100.1', '2001:db8::1', '127.0.0.1']);
    await pools().create(poolObject('p'));
    await gateway('gw', {
      externalIPs: [],
      annotations: { [annotations.externalAddress]: 'gw.example.com,203.0.113.7' },
    });
    const flags = ['--dns-servers', dns.address, '--dns-interval', '200ms'];
    const first = start(...flags);
    const addresses = async () => (await pools().get('p')).status?.nodes?.[0]?.externalIPs?.join();
    await until('resolved', async () => (await addresses()) === '203.0.113.7,198.51.100.1,198.51.100.2,2001:db8::1');
    dns.set('gw.example.com', ['198.51.100.9']);
    await until('followed', async () => (await addresses()) === '203.0.113.7,198.51.100.9');
    dns.fail(true);
    const failed = await until('told', async () => {
      const condition = await poolCondition('p', 'ExternalNamesResolved');
      return condition?.status === 'False' && condition;
    });
    expect(failed).toMatchObject({ reason: 'NameNotResolved' });
    expect(failed.message).toContain('gw.example.com of node gw (ESERVFAIL; 203.0.113.7, 198.51.100.9 used meanwhile)');
    expect(await addresses()).toBe('203.0.113.7,198.51.100.9');
    await first.stop();
    const second = start(...flags); // what is listed counts as long as nothing is resolved
    await until('a round', async () =>
      /reconcile_total\{controller="gateway-pools",result="requeue_after"\} [1-9]/.test(
        (await second.health('/metrics')).body,
      ),
    );
    expect(await addresses()).toBe('203.0.113.7,198.51.100.9');
    dns.fail(false);
    await until('well again', async () => (await poolCondition('p', 'ExternalNamesResolved'))?.status === 'True');
  } finally {
    await dns.stop();
  }
});

test('a foreign entry in connectedSites goes with the next write', async () => {
  await sites().create(siteObject('a'));
  await pools().create(poolObject('p'));
  await clientOf(api.cluster, siteGatewayPoolAssignmentKind).create({
    apiVersion,
    kind: 'SiteGatewayPoolAssignment',
    metadata: { name: 'a-p' },
    spec: { sites: ['a'], gatewayPools: ['p'] },
  });
  await gateway('gw');
  start();
  const connected = async () => (await pools().get('p')).status?.connectedSites?.join();
  await until('connected', async () => (await connected()) === 'a');
  await pools().mergePatch('p', { status: { connectedSites: ['x', 'a'] } }, { subresource: 'status' });
  await until('gone', async () => (await connected()) === 'a').catch(() => undefined);
  expect(await connected()).toBe('a');
  const foreign = { apiVersion, kind: 'GatewayPool', metadata: { name: 'p' }, status: { connectedSites: ['y'] } };
  await pools().apply(foreign, { fieldManager: 'somebody', force: true, subresource: 'status' });
  await until('gone', async () => (await connected()) === 'a').catch(() => undefined);
  expect(await connected()).toBe('a');
  expect((await pools().get('p')).status?.reachableSites).toEqual(['a']);
});

test('an entry that another manager wrote while the list was a set goes after the upgrade of the kind', async () => {
  const { crds } = coreClients(api.cluster);
  const name = 'gatewaypools.net.unbounded-cloud.io';
  const listType =
    '/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/connectedSites/x-kubernetes-list-type';
  const setType = (value: string) => crds.jsonPatch(name, [{ op: 'replace', path: listType, value }]);
  await pools().create(poolObject('p'));
  await setType('set');
  const apply = (fieldManager: string, connectedSites: readonly string[]) => {
    const object = { apiVersion, kind: 'GatewayPool', metadata: { name: 'p' }, status: { connectedSites } };
    return pools().apply(object, { fieldManager, force: true, subresource: 'status' });
  };
  try {
    await until('the list is a set', async () => {
      await apply('somebody', ['x']);
      await apply('unbounded-gateway-health', ['a']);
      return (await pools().get('p')).status?.connectedSites?.length === 2;
    });
  } finally {
    await setType('atomic');
  }
  start();
  await until('gone', async () => (await pools().get('p')).status?.connectedSites?.length === 0);
  expect((await pools().get('p')).status?.nodeCount).toBe(0);
});

test('a status that is refused stops neither the roles nor the status of others', async () => {
  api.apply(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: { name: refuse-one }
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - { apiGroups: [net.unbounded-cloud.io], apiVersions: ['*'], resources: [gatewaypools, gatewaypools/status], operations: [UPDATE] }
  validations:
    - { expression: "object.metadata.name != 'p'", message: not this one }
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: { name: refuse-one }
spec: { policyName: refuse-one, validationActions: [Deny] }
`);
  try {
    await pools().create(poolObject('p'));
    await pools().create(poolObject('q'));
    await until('the policy is in force', () =>
      pools()
        .mergePatch('p', { metadata: { annotations: { x: String(Math.random()) } } })
        .then(
          () => false,
          () => true,
        ),
    );
    await gateway('g1');
    await gateway('g2', { labels: { gateway: 'q' } });
    start();
    await until('the other pool', async () => (await members('q')).includes('g2'));
    await until('both roles', async () => (await port('g1')) && (await port('g2')));
    await until('both objects', async () => (await poolNodes().listAll()).length === 2);
    expect(await members('p')).toEqual([]);
    const { events } = coreClients(api.cluster);
    const event = await until('an Event', async () =>
      (await events.listAll()).find(({ reason }) => reason === 'WriteRefused'),
    );
    expect(event.regarding).toMatchObject({ kind: 'GatewayPool', name: 'p' });
  } finally {
    api.kubectl('delete', 'validatingadmissionpolicybinding,validatingadmissionpolicy', 'refuse-one');
  }
  await until('the refused one follows', async () => (await members('p')).includes('g1'));
});

test('a pool whose labels a kubelet can set says so', async () => {
  await pools().create(poolObject('p'));
  await pools().create(poolObject('q', { nodeSelector: { 'node-restriction.kubernetes.io/gateway-of': 'q' } }));
  start();
  expect(await until('p', () => poolCondition('p', 'SelectorProtected'))).toMatchObject({
    status: 'False',
    reason: 'KubeletCanSetLabels',
  });
  expect(await until('q', () => poolCondition('q', 'SelectorProtected'))).toMatchObject({ status: 'True' });
});

test('a gateway does not get the key that a slice lists for another node', async () => {
  await sites().create(siteObject('a'));
  await pools().create(poolObject('p'));
  const key = { [annotations.wireGuardPublicKey]: publicKeyFor('victim') };
  await createNode(nodes(), { name: 'victim', internalIPs: ['10.1.9.1'], annotations: key });
  await listInSlice({ name: 'victim', wireGuardPublicKey: publicKeyFor('victim') });
  start();
  await gateway('evil', { annotations: key });
  const condition = await until('told', async () => {
    const found = await poolCondition('p', 'NodesEligible');
    return found?.status === 'False' && found;
  });
  expect(condition).toMatchObject({ reason: 'NoPublicKey' });
  expect(await members('p')).toEqual([]);
  await nodes().delete('victim');
  await until('the key is free', async () => (await members('p')).includes('evil'));
});
