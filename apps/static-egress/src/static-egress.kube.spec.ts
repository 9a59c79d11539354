import { coreClients } from '@unbounded/kube';
import { type ApiServer, borrowApiServer, until } from '@unbounded/testing';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';

import {
  createPod,
  deletePod,
  egressPool,
  prepareEgressCluster,
  SHOP,
  staticEgress,
} from './egress-cluster.testdata.ts';
import { type SimulatedAgents, simulateAgents } from './simulated-agents.testdata.ts';
import { createTestController, sliceWritesOf } from './test-controller.testdata.ts';

const ADDRESS = '192.0.2.200';
const EVERYWHERE = { cidr: '0.0.0.0/0' } as const;
const labelled = (app: string) => ({ podSelector: { matchLabels: { app } }, ...EVERYWHERE });

let api: ApiServer;
let agents: SimulatedAgents;
let controller: ReturnType<typeof createTestController>;

beforeAll(async () => {
  api = await borrowApiServer();
  controller = createTestController(api);
});
beforeEach(async () => {
  await prepareEgressCluster(api);
  agents = simulateAgents(api.cluster);
});
afterEach(async () => {
  await controller.killAll();
  await agents[Symbol.asyncDispose]();
});
afterAll(() => api?.stop());

test('a rule settles: its address has an owner, its pods have routes; status, metrics and explain say so', async () => {
  const { clients } = controller;
  await clients.services.create({
    metadata: { name: 'web', namespace: SHOP },
    spec: { selector: { app: 'web' }, ports: [{ port: 80 }] },
  });
  const uids = [await createPod(api.cluster, 1), await createPod(api.cluster, 2, { node: 'n2' })];
  await createPod(api.cluster, 3, { labels: { app: 'other' } });
  await clients.rules.create(staticEgress('partner', { 'service-name': 'web', egressip: ADDRESS, ...EVERYWHERE }));
  const app = controller.start();
  await controller.settled(app);
  const owner = await controller.owner(ADDRESS);
  const { status } = await controller.rule();
  expect(status).toMatchObject({ pods: 2, addresses: [{ address: ADDRESS, node: owner, epoch: 1 }] });
  const slices = await clients.slices.listAll();
  expect(slices.flatMap(({ spec }) => (spec.pods ?? []).map(({ uid }) => uid)).toSorted()).toEqual(uids.toSorted());
  const sources = slices.find(({ spec }) => spec.nodeName === owner)?.spec.sources ?? [];
  expect(sources.map(({ uid }) => uid).toSorted()).toEqual(uids.toSorted());
  const metrics = (await app.health('/metrics')).body;
  expect(metrics).toContain('unbounded_net_controller_egress_rules{ready="true"} 1');
  expect(metrics).toContain('unbounded_net_controller_egress_addresses{state="owned"} 1');
  expect(controller.explain(`${SHOP}/p1`, '198.51.100.1')).toBe(
    `verdict:  leaves with an egress address\nrule:     StaticEgressIP/shop/partner/0\naddress:  ${ADDRESS}\nowner:    ${owner}\nreason:   it leaves from node ${owner}\n`,
  );
  expect(controller.explain(`${SHOP}/p3`, '198.51.100.1')).toContain('no rule selects the pod');
  expect(controller.explain(`${SHOP}/p1`, '10.102.0.7')).toContain('stays in the cluster');
  expect(() => controller.explain('p1', '198.51.100.1')).toThrow('write NAMESPACE/POD');
});

/** By the name of the rule: the rule, the condition that is False, and what it says. */
const BAD = {
  'of-node': [
    { ...labelled('web'), egressip: '192.0.2.1' },
    'Accepted',
    'spec.rules[0].egressip "192.0.2.1": is the address of a node: take one that no host has',
  ],
  'of-pod': [
    { ...labelled('web'), egressip: '10.101.0.7' },
    'Accepted',
    'spec.rules[0].egressip "10.101.0.7": is inside a block of pods',
  ],
  'of-service': [
    { ...labelled('web'), egressip: '10.96.7.7' },
    'Accepted',
    'spec.rules[0].egressip "10.96.7.7": is inside a block of Services',
  ],
  broadcast: [{ ...labelled('web'), egressip: '192.0.2.255' }, 'Accepted', 'spec.rules[0].egressip "192.0.2.255"'],
  outside: [
    { ...labelled('web'), egressip: '203.0.113.5' },
    'OwnersElected',
    'spec.rules[0].egressip "203.0.113.5": is outside of the networks of all nodes: take an address of such a network',
  ],
  'no-service': [
    { 'service-name': 'absent', egressip: '192.0.2.201', ...EVERYWHERE },
    'Accepted',
    'spec.rules[0].service-name "absent": namespace shop has no Service of this name: create it',
  ],
  'no-pool': [{ ...labelled('web'), pool: 'absent' }, 'Accepted', 'spec.rules[0].pool "absent"'],
  exhausted: [{ ...labelled('web'), pool: 'small', addresses: 3 }, 'AddressesAssigned', 'spec.rules[0].pool "small"'],
  'not-for-us': [{ ...labelled('web'), pool: 'foreign' }, 'Accepted', 'spec.rules[0].pool "foreign"'],
  'no-candidate': [{ ...labelled('web'), pool: 'nodeless' }, 'OwnersElected', 'label a node, or change nodeSelector'],
  'host-network': [{ ...labelled('host'), egressip: '192.0.2.202' }, 'PodsCovered', 'shop/p3'],
} as const;

test('what is wrong is told with field, value and remedy, and changes nothing else', async () => {
  const { clients } = controller;
  await createPod(api.cluster, 1, { labels: { app: 'good' } });
  await createPod(api.cluster, 2);
  await createPod(api.cluster, 3, { labels: { app: 'host' }, isHostNetwork: true });
  const labels = { matchLabels: { absent: 'everywhere' } };
  await clients.pools.create(egressPool('small', { ranges: [{ from: '192.0.2.210', to: '192.0.2.210' }] }));
  await clients.pools.create(egressPool('foreign', { blocks: ['192.0.2.216/29'], namespaceSelector: labels }));
  await clients.pools.create(egressPool('nodeless', { blocks: ['192.0.2.224/29'], nodeSelector: labels }));
  await clients.rules.create(staticEgress('good', { ...labelled('good'), egressip: ADDRESS }));
  await controller.settled(controller.start());
  const before = (await controller.rule('good')).status;
  for (const [name, [spec]] of Object.entries(BAD)) await clients.rules.create(staticEgress(name, spec));
  await clients.pools.create(egressPool('overlapping', { blocks: ['192.0.2.208/29'] }));
  for (const [name, [, type, message]] of Object.entries(BAD)) {
    const found = await until(`${name} has a condition`, async () => controller.condition(type, name));
    expect(`${name} ${found.status} ${found.message}`).toContain(`${name} False`);
    expect(`${name} ${found.message}`).toContain(message);
  }
  const overlap = await until('the pool has a condition', async () =>
    (await clients.pools.get('overlapping')).status?.conditions?.find(({ type }) => type === 'Accepted'),
  );
  expect(overlap).toMatchObject({ status: 'False', reason: 'PoolOverlap' });
  const { events } = coreClients(api.cluster);
  await until('an Event on the pod', async () =>
    (await events.listAll()).some(({ reason, regarding }) => reason === 'EgressNotCovered' && regarding?.name === 'p3'),
  );
  expect((await controller.rule('good')).status).toEqual(before);
});

test('a pod that comes or goes concerns the slices of its node and of its owner alone', async () => {
  for (let number = 1; number <= 30; number++) await createPod(api.cluster, number, { node: `n${1 + (number % 3)}` });
  await controller.clients.rules.create(staticEgress('partner', { ...labelled('web'), egressip: ADDRESS }));
  const app = controller.start();
  await controller.settled(app);
  const before = await sliceWritesOf(app);
  const uid = await createPod(api.cluster, 31, { node: 'n3' });
  const hasPod = async () =>
    (await controller.clients.slices.listAll()).flatMap(({ spec }) => spec.pods ?? []).find((pod) => pod.uid === uid);
  await until('the pod has routes and an address', async () => (await hasPod())?.addresses.length === 1);
  await deletePod(api.cluster, 31);
  await until('the pod is gone', async () => (await hasPod()) === undefined);
  // It comes without an address, gets one, and goes: three times two slices at most.
  expect((await sliceWritesOf(app)) - before).toBeLessThanOrEqual(6);
});

test('addresses of a pool stay with a rule that has no pods any more', async () => {
  const { clients } = controller;
  await clients.pools.create(egressPool('public', { blocks: ['192.0.2.224/28'] }));
  await createPod(api.cluster, 1);
  await clients.rules.create(staticEgress('partner', { ...labelled('web'), pool: 'public', addresses: 2 }));
  await controller.settled(controller.start());
  const { addresses } = (await controller.rule()).status!;
  expect(addresses).toHaveLength(2);
  await deletePod(api.cluster, 1);
  await until('no pods', async () => (await controller.rule()).status?.pods === 0);
  expect((await controller.rule()).status?.addresses).toEqual(addresses);
  expect((await clients.pools.get('public')).status).toMatchObject({ assigned: 2 });
});
