import {
  annotations,
  GATEWAY_TAINT,
  gatewayPoolKind,
  gatewayPoolNodeKind,
  GROUP_VERSION,
  labels,
  siteGatewayPoolAssignmentKind,
  siteKind,
} from '@unbounded/crds';
import { type Cluster, clientOf, coreClients, isForbidden } from '@unbounded/kube';
import { openCluster } from '@unbounded/kube/open-cluster';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';

import { NAMESPACE } from './chart.ts';
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
} from './index.ts';

const programs = ['cidr-allocator', 'site-membership', 'gateway-health'] as const;

let api: ApiServer;
const open: Cluster[] = [];
const apps: AppProcess[] = [];
beforeAll(async () => {
  api = await borrowApiServer();
  await resetCluster(api.cluster);
  await installAccessRules(api);
});
beforeEach(async () => {
  await resetCluster(api.cluster);
  for (const name of ['mine', 'other']) {
    await createNode(coreClients(api.cluster).nodes, { name, labels: { zone: 'z' }, annotations: { team: 't' } });
  }
});
afterEach(async () => {
  for (const app of apps.splice(0)) await app.stop('SIGKILL');
  for (const cluster of open.splice(0)) cluster.close();
});
afterAll(() => api?.stop());

const as = async (account: string, boundNode?: string) => {
  const cluster = openCluster({
    kubeconfig: await kubeconfigOf(api, account, boundNode),
  });
  open.push(cluster);
  return { ...coreClients(cluster), cluster, poolNodes: clientOf(cluster, gatewayPoolNodeKind) };
};
const annotate = (name: string, value = publicKeyFor('x')) => ({ metadata: { annotations: { [name]: value } } });
const condition = (type: string) => ({
  status: {
    conditions: [
      {
        type,
        status: 'False',
        reason: 'Test',
        message: '',
        lastTransitionTime: '2026-01-01T00:00:00Z',
        lastHeartbeatTime: '2026-01-01T00:00:00Z',
      },
    ],
  },
});

test('an agent writes its own annotations and its own conditions', async () => {
  const { nodes } = await as('node-dataplane', 'mine');
  await nodes.mergePatch('mine', annotate(annotations.wireGuardPublicKey));
  await nodes.mergePatch('mine', annotate(annotations.tunnelProtocols, 'VXLAN,WireGuard'));
  await nodes.mergePatch('mine', annotate(annotations.features, 'node-addresses'));
  for (const type of ['NetworkUnavailable', 'UnboundedNetworkDegraded', 'UnboundedRelayed']) {
    await nodes.mergePatch('mine', condition(type), { subresource: 'status' });
    expect((await nodes.get('mine')).status?.conditions?.map((written) => written.type)).toContain(type);
  }
});

test('an agent has any condition of the prefix Unbounded, and takes it away again by an apply without it', async () => {
  const { nodes } = await as('node-dataplane', 'mine');
  const apply = async (...types: readonly string[]): Promise<readonly string[]> => {
    const conditions = types.flatMap((type) => condition(type).status.conditions);
    const object = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'mine' }, status: { conditions } };
    await nodes.apply(object, { subresource: 'status', fieldManager: 'test', force: true });
    return (await nodes.get('mine')).status?.conditions?.map(({ type }) => type) ?? [];
  };
  await expect(apply('NetworkUnavailable', 'UnboundedExample')).resolves.toContain('UnboundedExample');
  await expect(apply('NetworkUnavailable')).resolves.toEqual(['NetworkUnavailable']);
});

const LOCATOR = 'fd53:ab:cd:1::/64';
const onlyOwn = 'a node agent may change only annotations net.unbounded-cloud.io/';
test.each([
  [
    'another node',
    'other',
    annotate(annotations.wireGuardPublicKey),
    '',
    'the node agent of mine may change only its own Node, not other',
  ],
  [
    'another node’s status',
    'other',
    condition('NetworkUnavailable'),
    'status',
    'may change only its own Node, not other',
  ],
  ['a foreign annotation', 'mine', annotate('team', 'mine'), '', onlyOwn],
  ['removing a foreign annotation', 'mine', { metadata: { annotations: { team: null } } }, '', onlyOwn],
  [
    'the port that gateway-health gives',
    'mine',
    annotate(annotations.wireGuardPort, '51900'),
    '',
    'not wireguard-port',
  ],
  [
    'the external address that administrators set',
    'mine',
    annotate(annotations.externalAddress, '203.0.113.7'),
    '',
    'or external-address, which administrators set',
  ],
  ['its locator', 'mine', annotate(annotations.l2Locator, LOCATOR), '', onlyOwn],
  [
    'the locator of another node',
    'other',
    annotate(annotations.l2Locator, LOCATOR),
    '',
    'only its own Node, not other',
  ],
  [
    'a condition of another node that it may have itself',
    'other',
    condition('UnboundedExample'),
    'status',
    'may change only its own Node, not other',
  ],
  [
    'what its kubelet says of its memory',
    'mine',
    condition('MemoryPressure'),
    'status',
    'may change only the conditions NetworkUnavailable and Unbounded...',
  ],
  [
    'the condition that site-membership writes',
    'mine',
    condition('UnboundedNodeAccepted'),
    'status',
    'may change only the conditions NetworkUnavailable',
  ],
  ['a label', 'mine', { metadata: { labels: { zone: 'y' } } }, '', onlyOwn],
  ['its site', 'mine', { metadata: { labels: { [labels.site]: 'a' } } }, '', onlyOwn],
  ['a label by way of the status', 'mine', { metadata: { labels: { zone: 'y' } } }, 'status', onlyOwn],
  ['a taint', 'mine', { spec: { taints: [GATEWAY_TAINT] } }, '', onlyOwn],
  ['its pod CIDRs', 'mine', { spec: { podCIDR: '10.0.0.0/24', podCIDRs: ['10.0.0.0/24'] } }, '', onlyOwn],
  ['being unschedulable', 'mine', { spec: { unschedulable: true } }, '', onlyOwn],
  ['a finalizer', 'mine', { metadata: { finalizers: ['a.b/c'] } }, '', onlyOwn],
  [
    'readiness',
    'mine',
    condition('Ready'),
    'status',
    'may change only the conditions NetworkUnavailable and Unbounded... (but UnboundedNodeAccepted) of its Node',
  ],
  [
    'its addresses',
    'mine',
    { status: { addresses: [{ type: 'InternalIP', address: '10.0.0.1' }] } },
    'status',
    '(but UnboundedNodeAccepted) in the status',
  ],
])('an agent may not change %s', async (_, node, patch, subresource, message) => {
  const { nodes } = await as('node-dataplane', 'mine');
  const attempt = nodes.mergePatch(node, patch, subresource ? { subresource } : {});
  await expect(attempt).rejects.toSatisfy(isForbidden);
  await expect(attempt).rejects.toThrow(message);
});

test.each([
  ['a key that is none', { [annotations.wireGuardPublicKey]: 'x' }, '32 bytes in base64'],
  ['a key of 65 characters', { [annotations.wireGuardNextPublicKey]: 'A'.repeat(65) }, '32 bytes in base64'],
  ['a protocol of 40 characters', { [annotations.tunnelProtocols]: 'x'.repeat(40) }, 'at most 16 names'],
  ['a feature of 40 characters', { [annotations.features]: 'x'.repeat(40) }, 'at most 16 names'],
  ['a generation that is no number', { [annotations.wireGuardKeyGeneration]: '-1' }, 'must be integers'],
])('an agent may not announce %s; a value from before keeps it from nothing else', async (_, bad, message) => {
  const { nodes } = await as('node-dataplane', 'mine');
  await expect(nodes.mergePatch('mine', { metadata: { annotations: bad } })).rejects.toThrow(message);
  await coreClients(api.cluster).nodes.mergePatch('mine', { metadata: { annotations: bad } });
  await nodes.mergePatch('mine', annotate(annotations.tunnelMtu, '1400'));
});

test('a kubelet sets its own annotations but no external address; an administrator does, and the kubelet goes on', async () => {
  const kubelet = ['--as=system:node:mine', '--as-group=system:nodes'];
  expect(() =>
    api.kubectl('annotate', 'node', 'mine', `${annotations.externalAddress}=203.0.113.7`, ...kubelet),
  ).toThrow('a kubelet may not set the annotation net.unbounded-cloud.io/external-address');
  api.kubectl('annotate', 'node', 'mine', `${annotations.externalAddress}=203.0.113.7`);
  api.kubectl('annotate', 'node', 'mine', 'csi.example.com/x=y', ...kubelet);
  expect(() => api.kubectl('annotate', 'node', 'mine', `${annotations.externalAddress}-`, ...kubelet)).toThrow(
    'a kubelet may not set',
  );
});

test('a kubelet does not set the locator that cidr-allocator gives, and takes none away', async () => {
  const kubelet = ['--as=system:node:mine', '--as-group=system:nodes'];
  const set = (value: string) =>
    api.kubectl('annotate', 'node', 'mine', `${annotations.l2Locator}${value}`, ...kubelet);
  const refusal = 'a kubelet may not set the annotation net.unbounded-cloud.io/l2-locator';
  expect(() => set(`=${LOCATOR}`)).toThrow(refusal);
  const { nodes } = await as('cidr-allocator');
  await nodes.mergePatch('mine', annotate(annotations.l2Locator, LOCATOR));
  api.kubectl('annotate', 'node', 'mine', 'csi.example.com/x=y', ...kubelet);
  expect(() => set('-')).toThrow(refusal);
  for (const text of ['x', '10.0.0.0/8', `${LOCATOR} `, 'fd53::/48'])
    await expect(nodes.mergePatch('mine', annotate(annotations.l2Locator, text))).rejects.toThrow(
      'only an IPv6 block of /64',
    );
  await nodes.mergePatch('mine', { metadata: { annotations: { [annotations.l2Locator]: null } } });
});

test('site-membership writes its condition on any Node and nothing else of the status', async () => {
  const { nodes } = await as('site-membership');
  const write = (patch: object) => nodes.mergePatch('other', patch, { subresource: 'status' });
  await write(condition('UnboundedNodeAccepted'));
  for (const patch of [
    condition('Ready'),
    condition('NetworkUnavailable'),
    { status: { addresses: [{ type: 'InternalIP', address: '10.0.0.1' }] } },
    { metadata: { labels: { zone: 'y' } } },
    { metadata: { annotations: { [annotations.externalAddress]: '203.0.113.7' } } },
  ])
    await expect(write(patch)).rejects.toThrow('site-membership may change only the condition UnboundedNodeAccepted');
});

test('an agent whose token names no node changes nothing', async () => {
  const { nodes } = await as('node-dataplane');
  await expect(nodes.mergePatch('mine', annotate(annotations.wireGuardPublicKey))).rejects.toThrow(
    'must be bound to a pod or a Node',
  );
});

const poolNode = (name: string) => ({
  apiVersion: GROUP_VERSION,
  kind: 'GatewayPoolNode' as const,
  metadata: { name },
  spec: { nodeName: name, gatewayPool: 'p' },
});
const status = { status: { lastUpdated: '2026-01-01T00:00:00Z' } };

test('an agent writes the status of its own GatewayPoolNode and nothing else there', async () => {
  const admin = clientOf(api.cluster, gatewayPoolNodeKind);
  for (const name of ['mine', 'other']) await admin.create(poolNode(name));
  const { poolNodes } = await as('node-dataplane', 'mine');
  await poolNodes.mergePatch('mine', status, { subresource: 'status' });
  const own = 'the node agent of mine may write only its own GatewayPoolNode, not other';
  await expect(poolNodes.mergePatch('other', status, { subresource: 'status' })).rejects.toThrow(own);
  await expect(poolNodes.mergePatch('mine', { spec: { gatewayPool: 'q' } })).rejects.toSatisfy(isForbidden);
  await expect(poolNodes.create(poolNode('mine'))).rejects.toSatisfy(isForbidden);
  await expect(poolNodes.delete('mine')).rejects.toSatisfy(isForbidden);
});

test.each([
  [
    'creates a Site',
    (agent: Awaited<ReturnType<typeof as>>) => clientOf(agent.cluster, siteKind).create(siteObject('a')),
  ],
  ['deletes a Node', (agent: Awaited<ReturnType<typeof as>>) => agent.nodes.delete('mine')],
  ['creates a Node', (agent: Awaited<ReturnType<typeof as>>) => createNode(agent.nodes, { name: 'new' })],
  ['reads Leases', (agent: Awaited<ReturnType<typeof as>>) => agent.leases.list({ namespace: NAMESPACE })],
  [
    'writes a pool’s status',
    (agent: Awaited<ReturnType<typeof as>>) =>
      clientOf(agent.cluster, gatewayPoolKind).mergePatch('p', { status: {} }, { subresource: 'status' }),
  ],
])('RBAC refuses an agent that %s', async (_, attempt) => {
  await expect(attempt(await as('node-dataplane', 'mine'))).rejects.toSatisfy(isForbidden);
});

const podCidrs = { spec: { podCIDR: '10.0.0.0/24', podCIDRs: ['10.0.0.0/24'] } };
const site = { metadata: { labels: { [labels.site]: 'a' } } };
const taint = { spec: { taints: [GATEWAY_TAINT] } };
test.each([
  [
    'cidr-allocator',
    [podCidrs, annotate(annotations.l2Locator, LOCATOR)],
    [
      site,
      taint,
      annotate(annotations.wireGuardPort),
      { metadata: { annotations: { team: null, [annotations.l2Locator]: LOCATOR } } },
      { spec: { unschedulable: true } },
    ],
  ],
  [
    'site-membership',
    [site],
    [podCidrs, taint, annotate('a'), annotate(annotations.l2Locator, LOCATOR), { metadata: { labels: { zone: 'y' } } }],
  ],
  [
    'gateway-health',
    [taint, annotate(annotations.wireGuardPort, '51821')],
    [
      podCidrs,
      site,
      annotate('team', 'x'),
      { spec: { taints: [{ key: 'x', effect: 'NoExecute' }] } },
      { spec: { taints: [{ ...GATEWAY_TAINT, effect: 'NoExecute' }] } },
    ],
  ],
] as const)('%s changes of a Node only what is its own', async (account, allowed, refused) => {
  const { nodes } = await as(account);
  const before = (await nodes.get('mine')).spec?.taints ?? []; // the API server's own not-ready taint
  const withOthers = (patch: object): object => {
    const taints = (patch as { spec?: { taints?: readonly object[] } }).spec?.taints;
    return taints ? { spec: { taints: [...before, ...taints] } } : patch;
  };
  for (const patch of allowed) await expect(nodes.mergePatch('mine', withOthers(patch))).resolves.toBeDefined();
  for (const patch of refused) {
    const attempt = nodes.mergePatch('other', withOthers(patch));
    await expect(attempt).rejects.toThrow(`${account} may change only`);
  }
});

test('the three programs do their work with their own rights, and nothing they ask is refused', async () => {
  const { nodes } = coreClients(api.cluster);
  const pools = clientOf(api.cluster, gatewayPoolKind);
  for (const program of programs) {
    apps.push(startApp(program, ['--kubeconfig', await kubeconfigOf(api, program)]));
  }
  await clientOf(api.cluster, siteKind).create(siteObject('a'));
  await pools.create(poolObject('p'));
  await clientOf(api.cluster, siteGatewayPoolAssignmentKind).create({
    apiVersion: GROUP_VERSION,
    kind: 'SiteGatewayPoolAssignment',
    metadata: { name: 'a-p' },
    spec: { sites: ['a'], gatewayPools: ['p'] },
  });
  await createNode(nodes, {
    name: 'gw',
    internalIPs: ['10.1.0.1'],
    externalIPs: ['192.0.2.1'],
    labels: { gateway: 'p' },
    annotations: { [annotations.wireGuardPublicKey]: publicKeyFor('gw') },
  });
  await until('all of it is done', async () => {
    const { metadata, spec } = await nodes.get('gw');
    const isMarked =
      metadata.labels?.[labels.site] === 'a' && metadata.annotations?.[annotations.wireGuardPort] === '51821';
    const { status: poolStatus, metadata: pool } = await pools.get('p');
    const isListed = poolStatus?.nodes?.[0]?.podCIDRs?.[0] === spec?.podCIDR && pool.finalizers !== undefined;
    return (
      isMarked && spec?.podCIDR !== undefined && spec.taints?.some(({ key }) => key === GATEWAY_TAINT.key) && isListed
    );
  });
  for (const app of apps) expect(await app.stop()).toBe(0);
  const refusals = apps.flatMap(({ log }) => log.filter((line) => JSON.stringify(line).includes('"status":403')));
  expect(refusals).toEqual([]);
});
