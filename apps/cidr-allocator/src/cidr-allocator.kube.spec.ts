import { annotations, gatewayPoolKind, meshKind, type Site, siteKind, siteNodeSliceKind } from '@unbounded/crds';
import { parsePrefix } from '@unbounded/ip';
import { clientOf, coreClients, endpointSlices, type Node, type ResourceClient } from '@unbounded/kube';
import {
  type AppProcess,
  createNode,
  expireLeases,
  installAccessRules,
  kubeconfigOf,
  type OwnApiServer,
  poolObject,
  publicKeyFor,
  resetCluster,
  siteObject,
  startApiServer,
  startApp,
  until,
} from '@unbounded/testing';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';

import { findConflicts } from './block-conflicts.plan.ts';

let api: OwnApiServer;
/** With the program's own rights, and no other. */
let kubeconfig: string;
let nodes: ResourceClient<Node>;
let sites: ResourceClient<Site>;
const apps: AppProcess[] = [];

beforeAll(async () => {
  api = await startApiServer();
  await resetCluster(api.cluster);
  await installAccessRules(api);
  kubeconfig = await kubeconfigOf(api, 'cidr-allocator');
  nodes = coreClients(api.cluster).nodes;
  sites = clientOf(api.cluster, siteKind);
});
beforeEach(() => resetCluster(api.cluster));
afterEach(async () => {
  for (const app of apps.splice(0)) await app.stop('SIGKILL');
});
afterAll(() => api?.stop());

const start = (...args: string[]): AppProcess => {
  const app = startApp('cidr-allocator', ['--kubeconfig', kubeconfig, ...args]);
  apps.push(app);
  return app;
};
const blocks = async (): Promise<Record<string, readonly string[] | undefined>> =>
  Object.fromEntries((await nodes.listAll()).map(({ metadata, spec }) => [metadata.name, spec?.podCIDRs]));
const condition = async (site: string, type: string) =>
  (await sites.get(site)).status?.conditions?.find((entry) => entry.type === type);

test('nodes get blocks of both families, once, and the site says that all is well', async () => {
  await sites.create(siteObject('a', { podCidrAssignments: [{ cidrBlocks: ['100.64.0.0/16', 'fd00:64::/48'] }] }));
  await createNode(nodes, { name: 'n1', internalIPs: ['10.1.0.1'] });
  await createNode(nodes, { name: 'elsewhere', internalIPs: ['10.9.0.1'] });
  start();
  await createNode(nodes, { name: 'n2', internalIPs: ['10.1.0.2'] });
  await until('two nodes have blocks', async () => {
    const all = await blocks();
    return all['n1'] && all['n2'];
  });
  const all = await blocks();
  expect(new Set([...all['n1']!, ...all['n2']!])).toEqual(
    new Set(['100.64.0.0/24', 'fd00:64::/64', '100.64.1.0/24', 'fd00:64:0:1::/64']),
  );
  expect((await nodes.get('n1')).spec?.podCIDR).toBe(all['n1']![0]);
  expect(all['elsewhere']).toBeUndefined();
  expect(await until('condition', () => condition('a', 'PodCIDRsAvailable'))).toMatchObject({ status: 'True' });
});

test('a full site waits, says so and is served by a new block without a restart; other sites go on', async () => {
  await sites.create(siteObject('small', { podCidrAssignments: [{ cidrBlocks: ['100.64.0.0/23'] }] }));
  await sites.create(
    siteObject('big', { nodeCidrs: ['10.2.0.0/16'], podCidrAssignments: [{ cidrBlocks: ['100.65.0.0/16'] }] }),
  );
  const app = start();
  for (const index of [1, 2, 3]) await createNode(nodes, { name: `n${index}`, internalIPs: [`10.1.0.${index}`] });
  await until('exhausted', async () => (await condition('small', 'PodCIDRsAvailable'))?.status === 'False');
  expect((await condition('small', 'PodCIDRsAvailable'))?.message).toContain(
    'add a block to spec.podCidrAssignments[0].cidrBlocks; waiting: n3',
  );
  await createNode(nodes, { name: 'other', internalIPs: ['10.2.0.1'] });
  await until('the other site goes on', async () => (await blocks())['other']);
  const { events } = coreClients(api.cluster);
  const seen = await until('events', async () => {
    const all = (await events.listAll()).filter(({ reason }) => reason === 'PodCIDRsExhausted');
    return all.length >= 2 && all;
  });
  expect(seen.map(({ regarding }) => `${regarding?.kind} ${regarding?.name}`).sort()).toEqual([
    'Node n3',
    'Site small',
  ]);
  expect((await app.health('/metrics')).body).toContain(
    'unbounded_net_controller_pod_cidr_waiting_nodes{site="small"} 1',
  );
  await sites.mergePatch('small', {
    spec: { podCidrAssignments: [{ cidrBlocks: ['100.64.0.0/23', '100.64.8.0/23'] }] },
  });
  await until('served', async () => (await blocks())['n3']);
  expect((await blocks())['n3']).toEqual(['100.64.8.0/24']);
  await until('well again', async () => (await condition('small', 'PodCIDRsAvailable'))?.status === 'True');
});

test('with --on-exhaustion=exit a full pool ends the process with code 1', async () => {
  await sites.create(
    siteObject('small', { podCidrAssignments: [{ cidrBlocks: ['100.64.0.0/25'], nodeBlockSizes: { ipv4: 26 } }] }),
  );
  for (const index of [1, 2, 3]) await createNode(nodes, { name: `n${index}`, internalIPs: [`10.1.0.${index}`] });
  expect(await start('--on-exhaustion', 'exit').exited).toBe(1);
});

test('200 nodes and a killed leader: every node has its block, none overlap, the follower takes over', async () => {
  await sites.create(siteObject('a', { podCidrAssignments: [{ cidrBlocks: ['100.64.0.0/16'] }] }));
  const replicas = [start(), start()];
  const leads = (app: AppProcess) => app.log.some(({ msg }) => msg === 'became leader');
  const leader = await until('a leader', () => replicas.find(leads));
  const follower = replicas.find((app) => app !== leader)!;
  await until('the follower is ready', async () => (await follower.health('/readyz')).status === 200);
  const create = async (index: number) =>
    createNode(nodes, { name: `n${index}`, internalIPs: [`10.1.${index >> 8}.${index & 255}`] });
  for (let index = 0; index < 200; index++) {
    await create(index);
    if (index !== 100) continue;
    await leader.stop('SIGKILL');
    await expireLeases(api.cluster);
  }
  await until('the follower leads', () => leads(follower));
  await until('all have blocks', async () => Object.values(await blocks()).every(Boolean));
  const owned = Object.entries(await blocks()).map(([owner, cidrs]) => ({
    owner,
    rank: owner,
    prefix: parsePrefix(cidrs![0]!),
  }));
  expect(owned).toHaveLength(200);
  expect(findConflicts(owned)).toEqual([]);
});

test('a leader that is told to end releases its Lease: the follower does not wait for it to run out', async () => {
  await sites.create(siteObject('a'));
  const first = start('--lease-duration', '120s');
  await until('the first leads', () => first.log.some(({ msg }) => msg === 'became leader'));
  const second = start();
  await until('the second is ready', async () => (await second.health('/readyz')).status === 200);
  expect(await first.stop()).toBe(0);
  const leads = () => second.log.some(({ msg }) => msg === 'became leader');
  await until('the second leads, though the Lease would still be held', leads);
});

/** What site-membership has listed. */
const list = (name: string, ...podCIDRs: string[]) =>
  clientOf(api.cluster, siteNodeSliceKind).create({
    apiVersion: 'net.unbounded-cloud.io/v1alpha1',
    kind: 'SiteNodeSlice',
    metadata: { name: 'a-0' },
    siteName: 'a',
    sliceIndex: 0,
    nodes: [{ name, podCIDRs }],
  });

test('two nodes whose blocks overlap get an Event on the one that was not listed and a metric; nothing is changed', async () => {
  await sites.create(siteObject('a'));
  await list('n1', '100.64.0.0/23');
  await createNode(nodes, { name: 'n1', internalIPs: ['10.1.0.1'], podCIDRs: ['100.64.0.0/23'] });
  await createNode(nodes, { name: 'n2', internalIPs: ['10.1.0.2'], podCIDRs: ['100.64.1.0/24'] });
  const app = start();
  const { events } = coreClients(api.cluster);
  const event = await until('event', async () =>
    (await events.listAll()).find(({ reason }) => reason === 'PodCIDROverlap'),
  );
  expect(event.regarding?.name).toBe('n2');
  expect(event.note).toContain('100.64.1.0/24 overlaps 100.64.0.0/23 of node n1, which was listed with it first');
  expect(event.note).toContain('delete the Node object of n2 and register the node anew');
  expect((await app.health('/metrics')).body).toContain('unbounded_net_controller_pod_cidr_conflicts 1');
  await createNode(nodes, { name: 'n3', internalIPs: ['10.1.0.3'] });
  await until('n3 gets what is free of both', async () => (await blocks())['n3']);
  expect((await blocks())['n3']).toEqual(['100.64.2.0/24']);
});

test('the API server restarts: the allocator lives through it and goes on', async () => {
  await sites.create(siteObject('a'));
  const app = start('--lease-duration', '3s');
  await until('it leads', () => app.log.some(({ msg }) => msg === 'became leader'));
  await api.kill();
  await until('it no longer leads', () => app.log.some(({ msg }) => msg === 'no longer leader'));
  expect((await app.health('/healthz')).status).toBe(200);
  await api.start();
  await createNode(nodes, { name: 'n1', internalIPs: ['10.1.0.1'] });
  await until('allocated', async () => (await blocks())['n1']);
  expect(await app.stop()).toBe(0);
});

test('a leader that is suspended in the middle of its work gives nothing away twice when it wakes up', async () => {
  await sites.create(siteObject('a', { podCidrAssignments: [{ cidrBlocks: ['100.64.0.0/16'] }] }));
  const leader = start();
  await until('it leads', () => leader.log.some(({ msg }) => msg === 'became leader'));
  const follower = start();
  await until('the follower is ready', async () => (await follower.health('/readyz')).status === 200);
  const allocated = () => leader.log.filter(({ msg }) => msg === 'allocated').length;
  await Promise.all(
    Array.from({ length: 60 }, (_, index) =>
      createNode(nodes, { name: `n${index}`, internalIPs: [`10.1.0.${index + 1}`] }),
    ),
  );
  await until('it is at work', () => allocated() > 0);
  process.kill(leader.pid, 'SIGSTOP');
  try {
    await expireLeases(api.cluster);
    await until('the follower leads', () => follower.log.some(({ msg }) => msg === 'became leader'));
    for (let index = 60; index < 90; index++)
      await createNode(nodes, { name: `n${index}`, internalIPs: [`10.1.0.${index + 1}`] });
    await until('all have blocks', async () => Object.values(await blocks()).every(Boolean));
  } finally {
    process.kill(leader.pid, 'SIGCONT');
  }
  await until('the old leader knows', () => leader.log.some(({ msg }) => msg === 'no longer leader'));
  const owned = Object.entries(await blocks()).map(([owner, cidrs]) => ({
    owner,
    rank: owner,
    prefix: parsePrefix(cidrs![0]!),
  }));
  expect(owned).toHaveLength(90);
  expect(findConflicts(owned)).toEqual([]);
});

test('the block of a deleted node is not given to the next one, unless nothing else is free', async () => {
  await sites.create(siteObject('a', { podCidrAssignments: [{ cidrBlocks: ['100.64.0.0/22'] }] }));
  start();
  const add = async (name: string, index: number) => {
    await createNode(nodes, { name, internalIPs: [`10.1.0.${index}`] });
    return until(`${name} has a block`, async () => (await blocks())[name]?.[0]);
  };
  expect(await add('n1', 1)).toBe('100.64.0.0/24');
  await nodes.delete('n1');
  expect(await add('n2', 2)).toBe('100.64.1.0/24');
  expect(await add('n3', 3)).toBe('100.64.2.0/24');
  expect(await add('n4', 4)).toBe('100.64.3.0/24');
  expect(await add('n5', 5)).toBe('100.64.0.0/24');
});

test('a late write of a deposed allocator gives a node the block of another: the first listed keeps it, the other is told', async () => {
  await sites.create(siteObject('a'));
  // n1 was allocated and listed; the write for n0, an older node, comes afterwards.
  await createNode(nodes, { name: 'n0', internalIPs: ['10.1.0.9'], podCIDRs: ['100.64.0.0/24'] });
  await createNode(nodes, { name: 'n1', internalIPs: ['10.1.0.1'], podCIDRs: ['100.64.0.0/24'] });
  await list('n1', '100.64.0.0/24');
  start();
  const { events } = coreClients(api.cluster);
  const event = await until('event', async () =>
    (await events.listAll()).find(({ reason }) => reason === 'PodCIDROverlap'),
  );
  expect(event.regarding?.name).toBe('n0');
  await createNode(nodes, { name: 'n2', internalIPs: ['10.1.0.2'] });
  expect(await until('n2', async () => (await blocks())['n2'])).toEqual(['100.64.1.0/24']);
});

test('blocks that hold an API server, Services or a node are told and not used; a hostile claim to a pool keeps nobody out', async () => {
  const apiServer = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'kubernetes', namespace: 'default' },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['203.0.113.99'] }],
  };
  const slices = api.cluster.client(endpointSlices);
  await slices.create(apiServer);
  try {
    const bad = { b: '203.0.113.0/24', c: '10.96.0.0/20', d: '10.1.0.0/16' };
    for (const [index, [name, block]] of Object.entries(bad).entries()) {
      const podCidrAssignments = [{ cidrBlocks: [block], nodeBlockSizes: { ipv4: 28 } }];
      await sites.create(siteObject(name, { nodeCidrs: [`10.${index + 2}.0.0/16`], podCidrAssignments }));
      await createNode(nodes, { name: `n-${name}`, internalIPs: [`10.${index + 2}.0.1`] });
    }
    await sites.create(siteObject('a'));
    await createNode(nodes, { name: 'greedy', podCIDRs: ['100.64.0.0/10'] });
    await createNode(nodes, { name: 'n-a', internalIPs: ['10.1.0.1'] });
    start();
    expect(await until('n-a', async () => (await blocks())['n-a'])).toHaveLength(1);
    const reasonOf = async (name: string) => {
      const found = await condition(name, 'PodCIDRsValid');
      return found?.status === 'False' && found.reason;
    };
    expect(await until('b', () => reasonOf('b'))).toBe('BlockHoldsAPIServer');
    expect(await until('c', () => reasonOf('c'))).toBe('BlockOverlapsServices');
    expect(await until('d', () => reasonOf('d'))).toBe('BlockHoldsNodeAddress');
    expect((await condition('b', 'PodCIDRsValid'))?.message).toContain(
      '203.0.113.0/24 holds the address of an API server (203.0.113.99)',
    );
    const all = await blocks();
    expect([all['n-b'], all['n-c'], all['n-d']]).toEqual([undefined, undefined, undefined]);
  } finally {
    await slices.delete('kubernetes', { namespace: 'default' });
  }
});

test('an external address that a gateway gets is heard of at once', async () => {
  const pools = clientOf(api.cluster, gatewayPoolKind);
  await sites.create(siteObject('a'));
  await pools.create(poolObject('p'));
  await createNode(nodes, { name: 'n', internalIPs: ['10.1.0.1'] });
  start();
  await until('n', async () => (await blocks())['n']);
  const gateway = { name: 'g', wireGuardPublicKey: publicKeyFor('g'), externalIPs: ['100.64.9.9'] };
  await pools.mergePatch('p', { status: { nodes: [gateway] } }, { subresource: 'status' });
  const refused = await until('told', async () => {
    const found = await condition('a', 'PodCIDRsValid');
    return found?.status === 'False' && found;
  });
  expect(refused).toMatchObject({ reason: 'BlockHoldsNodeAddress' });
});

test('a policy that refuses the block of one node and the status of one Site stops no other', async () => {
  api.apply(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: { name: refuse-one }
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - { apiGroups: [net.unbounded-cloud.io], apiVersions: ['*'], resources: [sites/status], operations: [UPDATE] }
      - { apiGroups: [''], apiVersions: ['*'], resources: [nodes], operations: [UPDATE] }
  validations:
    - { expression: "!(object.metadata.name in ['a', 'n1'])", message: not this one }
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: { name: refuse-one }
spec: { policyName: refuse-one, validationActions: [Deny] }
`);
  try {
    await sites.create(siteObject('a'));
    await sites.create(
      siteObject('b', { nodeCidrs: ['10.2.0.0/16'], podCidrAssignments: [{ cidrBlocks: ['100.65.0.0/16'] }] }),
    );
    await createNode(nodes, { name: 'n1', internalIPs: ['10.1.0.1'] });
    await until('the policy is in force', () =>
      nodes.mergePatch('n1', { metadata: { annotations: { x: String(Math.random()) } } }).then(
        () => false,
        () => true,
      ),
    );
    await createNode(nodes, { name: 'n2', internalIPs: ['10.1.0.2'] });
    await createNode(nodes, { name: 'n3', internalIPs: ['10.2.0.1'] });
    start();
    await until('the others', async () => {
      const all = await blocks();
      return all['n2'] && all['n3'];
    });
    await until('the other status', () => condition('b', 'PodCIDRsAvailable'));
    expect((await blocks())['n1']).toBeUndefined();
    expect((await condition('b', 'PodCIDRsAvailable'))?.status).toBe('True');
  } finally {
    api.kubectl('delete', 'validatingadmissionpolicybinding,validatingadmissionpolicy', 'refuse-one');
  }
  await until('the refused one follows', async () => (await blocks())['n1']);
  await until('the refused status', async () => (await condition('a', 'PodCIDRsAvailable'))?.status === 'True');
});

test('with a prefix in the Mesh Sites get blocks and nodes locators, a hostile claim is put right; without it all goes', async () => {
  const meshes = clientOf(api.cluster, meshKind);
  const blockOf = async (name: string) => (await sites.get(name)).status?.l2LocatorBlock;
  const locatorOf = async (name: string) => (await nodes.get(name)).metadata.annotations?.[annotations.l2Locator];
  const note = (locator: string) => ({ metadata: { annotations: { [annotations.l2Locator]: locator } } });
  await sites.create(siteObject('a'));
  await createNode(nodes, { name: 'n1', internalIPs: ['10.1.0.1'], annotations: { team: 't' } });
  await createNode(nodes, { name: 'elsewhere', internalIPs: ['10.9.0.1'] });
  start();
  await until('n1 has a block', async () => (await blocks())['n1']);
  expect([await blockOf('a'), await locatorOf('n1'), await condition('a', 'L2LocatorsAllocated')]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  await meshes.create({
    apiVersion: 'net.unbounded-cloud.io/v1alpha1',
    kind: 'Mesh',
    metadata: { name: 'default' },
    spec: { l2: { locatorPrefix: 'fd53:ab:cd::/48' } },
  });
  expect(await until('a locator', () => locatorOf('n1'))).toBe('fd53:ab:cd:1::/64');
  expect(await blockOf('a')).toBe('fd53:ab:cd::/52');
  expect(await until('condition', () => condition('a', 'L2LocatorsAllocated'))).toMatchObject({ status: 'True' });
  const n1 = await nodes.get('n1');
  expect(n1.metadata.annotations).toMatchObject({ team: 't' });
  // Creation times are in seconds; of Nodes of the same second the uid decides, which is random.
  const nextSecondMs = Date.parse(n1.metadata.creationTimestamp!) + 1000;
  await until('n2 will be the younger', async () => Date.now() >= nextSecondMs);
  await createNode(nodes, {
    name: 'n2',
    internalIPs: ['10.1.0.2'],
    annotations: note('fd53:ab:cd:1::/64').metadata.annotations,
  });
  await until('n2 has another', async () => (await locatorOf('n2')) === 'fd53:ab:cd:2::/64');
  await nodes.mergePatch('n2', note('x'));
  await until('what is malformed goes', async () => (await locatorOf('n2')) === 'fd53:ab:cd:2::/64');
  expect([await locatorOf('n1'), await locatorOf('elsewhere')]).toEqual(['fd53:ab:cd:1::/64', undefined]);
  await meshes.mergePatch('default', { spec: { l2: { locatorPrefix: 'fd53:ab:cd::/40' } } }).then(
    () => expect.unreachable('host bits are refused'),
    (error: Error) => expect(error.message).toContain('has host bits set'),
  );
  await meshes.delete('default');
  await until('all is taken away', async () => {
    const stands = [await locatorOf('n1'), await locatorOf('n2'), await blockOf('a')];
    return stands.every((value) => value === undefined) && !(await condition('a', 'L2LocatorsAllocated'));
  });
  expect(await condition('a', 'PodCIDRsAvailable')).toMatchObject({ status: 'True' });
});
