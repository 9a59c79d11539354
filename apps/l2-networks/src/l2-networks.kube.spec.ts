import { PROTECTION_FINALIZER } from '@unbounded/crds';
import { coreClients } from '@unbounded/kube';
import { L2_NODE_CONDITION } from '@unbounded/l2';
import { type ApiServer, borrowApiServer, expireLeases, until } from '@unbounded/testing';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';

import { createTestCluster, leads } from './test-cluster.testdata.ts';

let api: ApiServer;
let world: ReturnType<typeof createTestCluster>;
beforeAll(async () => {
  api = await borrowApiServer();
  world = createTestCluster(api);
});
beforeEach(async () => {
  await world.reset();
  for (const name of ['n1', 'n2']) await world.addNode(name);
});
afterEach(() => world?.reset());
afterAll(() => api?.stop());

const OF_1 = ['e1', 'lan.02-00-00-00-00-01', 'lan.ip.192.0.2.1'];
const OF_2 = ['e2', 'lan.02-00-00-00-00-02', 'lan.ip.192.0.2.2'];
const numbers = async (): Promise<Record<string, number | undefined>> =>
  Object.fromEntries(
    (await world.clients.networks.listAll()).map(({ metadata, status }) => [metadata.name, status?.number]),
  );
const standsLike = (what: string, ...names: readonly string[][]) =>
  until(what, async () => {
    const standing = await world.standing();
    return JSON.stringify(standing.toSorted()) === JSON.stringify(names.flat().toSorted());
  });

test('a Network gets its number, nodes, MTU and conditions; metrics follow, and end with it', async () => {
  const app = world.start();
  await world.addNetwork('lan');
  await until('a number', async () => (await world.network()).status?.number === 1);
  expect(await world.condition('Ready')).toMatchObject({ status: 'Unknown', reason: 'NoEndpoints' });
  await world.attach(1, 'n1');
  await world.attach(2, 'n2');
  await world.ready();
  await until('both', async () => (await world.network()).status?.endpoints === 2);
  expect((await world.network()).status).toMatchObject({ number: 1, mtu: 1366, endpoints: 2, nodes: ['n1', 'n2'] });
  const metrics = async () => (await app.health('/metrics')).body;
  expect(await metrics()).toContain('unbounded_l2_endpoints{network="lan"} 2');
  expect(await metrics()).toContain('unbounded_l2_networks{ready="True"} 1');
  await world.clients.networks.delete('lan');
  await until('says why it stays', async () => (await world.condition('Deletable'))?.reason === 'InUse');
  for (const number of [1, 2]) await world.release(number);
  await until('is gone', async () => (await world.clients.networks.listAll()).length === 0);
  await until('no series', async () => !(await metrics()).includes('network="lan"'));
});

test('what is wrong is a condition and an Event of one Network; another is ready all the while', async () => {
  world.start();
  await world.addNetwork('lan');
  await world.addNetwork('other', { prefixes: ['192.0.2.0/24', '192.0.2.128/25'] });
  await world.attach(1, 'n1');
  await world.attach(2, 'n2', 'other');
  await world.ready();
  await until('is refused', async () => (await world.condition('Accepted', 'other'))?.status === 'False');
  expect((await world.condition('Accepted', 'other'))?.message).toContain('spec.prefixes[1] "192.0.2.128/25"');
  expect(await world.condition('Ready')).toMatchObject({ status: 'True' });
  const { events } = coreClients(api.cluster);
  const about = async () => (await events.listAll()).filter(({ reason }) => reason === 'PrefixesOverlap');
  await until('an Event', async () => (await about()).some(({ regarding }) => regarding?.name === 'other'));
  expect((await about()).filter(({ regarding }) => regarding?.name !== 'other')).toEqual([]);
});

test('the MTU follows the nodes', async () => {
  world.start();
  await world.addNetwork('lan');
  await world.attach(1, 'n1');
  await until('the first', async () => (await world.network()).status?.mtu === 1366);
  await world.addNode('narrow', '1334');
  await world.attach(2, 'narrow');
  await until('less', async () => (await world.network()).status?.mtu === 1280);
  await world.addNode('silent', '');
  await world.attach(3, 'silent');
  await until('says so', async () => (await world.condition('MtuKnown'))?.message.includes('not known of silent'));
  expect((await world.network()).status?.mtu).toBe(1280);
});

test('a Network is not ready while a node that hosts it says that it does not forward', async () => {
  world.start();
  await world.addNetwork('lan');
  await world.attach(1, 'n1');
  await world.ready();
  const forwards = async (status: 'True' | 'False'): Promise<void> => {
    const condition = { type: L2_NODE_CONDITION, status, reason: 'LocatorNotCarried', message: 'set tunnelProtocol' };
    await world.clients.nodes.mergePatch('n1', { status: { conditions: [condition] } }, { subresource: 'status' });
  };
  await forwards('False');
  await until('is not ready', async () => (await world.condition('Ready'))?.status === 'False');
  expect(await world.condition('NodesForward')).toMatchObject({
    reason: 'NodesDoNotForward',
    message: 'node n1: LocatorNotCarried: set tunnelProtocol',
  });
  await forwards('True');
  await world.ready();
});

test('what a Node left goes when it is deleted by force; another one’s stays', async () => {
  const app = world.start();
  await world.addNetwork('lan');
  await world.attach(1, 'n1');
  await world.attach(2, 'n2');
  await world.ready();
  await world.clients.nodes.delete('n1');
  await standsLike('what n1 left is gone', OF_2);
  // The API server removes an object before the program reads its answer, and counts.
  for (const kind of ['FDBEntry', 'Neighbor', 'NetworkEndpoint']) {
    const counted = `unbounded_l2_orphans_removed_total{kind="${kind}"} 1\n`;
    await until(`${kind} is counted`, async () => (await app.health('/metrics')).body.includes(counted));
  }
  expect((await world.endpoint(2)).metadata.deletionTimestamp).toBeUndefined();
  await until('its nodes', async () => (await world.network()).status?.nodes?.join() === 'n2');
});

test('what the predecessor of a Node left goes, also when nobody looked meanwhile', async () => {
  await world.addNetwork('lan');
  for (const number of [1, 2]) await world.attach(number, `n${number}`);
  const created = (await world.endpoint(1)).metadata.creationTimestamp!;
  await world.clients.nodes.delete('n1');
  await until('another second', () => Date.now() > Date.parse(created) + 1000);
  await world.addNode('n1');
  world.start();
  await standsLike('what the former n1 left is gone', OF_2);
  expect((await world.endpoint(2)).metadata.deletionTimestamp).toBeUndefined();
});

test('the endpoint of a Pod that is gone is deleted; its agent has the last word', async () => {
  world.start();
  await world.addNetwork('lan');
  await world.attach(1, 'n1');
  await world.ready();
  await world.removePod(1);
  await until('it is being deleted', async () => (await world.endpoint(1)).metadata.deletionTimestamp !== undefined);
  expect(await world.standing()).toEqual(OF_1);
  await world.release(1);
  await standsLike('entries without an endpoint are gone');
});

test('numbers outlive a restart and are nobody else’s while an endpoint stands; at rest nothing is written', async () => {
  const first = world.start();
  for (const name of ['lan', 'b', 'c']) {
    await world.addNetwork(name);
    await until('numbered', async () => (await world.network(name)).status?.number !== undefined);
  }
  await world.attach(1, 'n1');
  await world.ready();
  expect(await numbers()).toEqual({ lan: 1, b: 2, c: 3 });
  await world.clients.networks.delete('lan');
  await world.clients.networks.delete('b');
  await until('b is gone', async () => (await world.clients.networks.listAll()).length === 2);
  expect(await first.stop()).toBe(0);
  const second = world.start();
  await world.addNetwork('d');
  await until('numbered', async () => (await world.network('d')).status?.number !== undefined);
  expect(await numbers()).toEqual({ lan: 1, c: 3, d: 2 });
  expect((await world.network('d')).metadata.finalizers).toEqual([PROTECTION_FINALIZER]);
  await until('settled', async () => (await world.condition('Ready', 'd'))?.reason === 'NoEndpoints');
  const versions = async () => {
    const lists = [world.clients.networks.listAll(), world.clients.endpoints.listAll()];
    return (await Promise.all(lists)).flat().map(({ metadata }) => metadata.resourceVersion);
  };
  const rest = await versions();
  // Passes go on meanwhile: these change nothing of any Network.
  for (const name of ['n3', 'n4']) await world.addNode(name);
  const passes = async (): Promise<number> =>
    Number(
      /reconcile_total\{controller="l2-networks",result="success"\} (\d+)/.exec(
        (await second.health('/metrics')).body,
      )?.[1],
    );
  const before = await passes();
  await world.addNode('n5');
  await until('a pass', async () => (await passes()) > before);
  expect(await versions()).toEqual(rest);
});

test('of two replicas one leads, and the other goes on where it was', async () => {
  const apps = [world.start(), world.start()];
  await until('one leads', () => apps.some(leads));
  await world.addNetwork('lan');
  await until('numbered', async () => (await world.network()).status?.number === 1);
  const leader = apps.find(leads)!;
  expect(apps.filter(leads)).toHaveLength(1);
  await leader.stop('SIGKILL');
  await expireLeases(api.cluster);
  await world.addNetwork('b');
  await world.attach(1, 'n1');
  await until('numbered by the other', async () => (await world.network('b')).status?.number === 2);
  expect(await numbers()).toEqual({ lan: 1, b: 2 });
  expect(apps.filter(leads)).toContain(apps.find((app) => app !== leader));
});
