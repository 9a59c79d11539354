import { type Cluster, coreClients } from '@unbounded/kube';
import { openCluster } from '@unbounded/kube/open-cluster';
import { answerTo, type ApiServer, borrowApiServer, installAccessRules, kubeconfigOf, until } from '@unbounded/testing';
import { NAMESPACE } from '@unbounded/testing/chart';
import { answersTo, refusals, taken } from '@unbounded/testing/write-rows';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';

import {
  agentMay,
  agentMayNot,
  boundTo,
  CLOSED,
  controllerMay,
  controllerMayNot,
  controllerMayNotByRole,
  endpointObject,
  endpoints,
  fdb,
  fdbEntries,
  fdbObject,
  mayJoin,
  mayNotJoin,
  NETWORK,
  networks,
  SELECTIVE,
  TRUSTING,
  WARY,
} from './access.testdata.ts';
import { createTestCluster, SHOP } from './test-cluster.testdata.ts';

/** What the programs may write, with the chart's own roles and policies. */

let api: ApiServer;
let world: ReturnType<typeof createTestCluster>;
const open: Cluster[] = [];
const as = async (account: string, node?: string): Promise<Cluster> => {
  const cluster = openCluster({ kubeconfig: await kubeconfigOf(api, account, node) });
  open.push(cluster);
  return cluster;
};
const send = (method: 'POST' | 'PATCH', path: string, body: object): Promise<unknown> => {
  const type = method === 'PATCH' ? { contentType: 'application/merge-patch+json' } : {};
  return api.cluster.transport.send({ method, path, body, ...type });
};

const prepare = async (): Promise<void> => {
  await world.reset();
  for (const node of ['n1', 'n2']) await world.addNode(node);
  await send('POST', networks(), NETWORK);
  for (const number of [1, 2]) await send('POST', endpoints(), endpointObject(number, `n${number}`));
  for (const number of [1, 2, 3, 4])
    await send('POST', fdbEntries, fdbObject(number, number === 3 ? 'learned' : 'static'));
  for (const [number, node] of [
    [1, 'n1'],
    [2, 'n2'],
    [3, 'n2'],
  ] as const)
    await send('PATCH', fdb(number, 'status'), boundTo(node, number === 2 ? 'e2' : 'e1'));
};

beforeAll(async () => {
  api = await borrowApiServer();
  world = createTestCluster(api);
  await world.reset();
  await installAccessRules(api, { 'l2-networks': { enabled: true } });
});
beforeEach(prepare);
afterEach(() => {
  for (const cluster of open.splice(0)) cluster.close();
});
afterAll(async () => {
  await world?.reset();
  await api?.stop();
});

test('the controller may write what it writes, and no more', async () => {
  const controller = await as('l2-networks');
  expect(await answersTo(controller, controllerMay)).toEqual(taken(controllerMay));
  expect(await answersTo(controller, controllerMayNotByRole)).toEqual(refusals(controllerMayNotByRole));
});

test('an agent writes endpoints and entries of its own node alone', async () => {
  const agent = await as('node-dataplane', 'n1');
  expect(await answersTo(agent, agentMay)).toEqual(taken(agentMay));
  expect(await answersTo(agent, agentMayNot)).toEqual(refusals(agentMayNot));
});

test('a pod joins a Network by its namespace, whatever the agent of its node says', async () => {
  api.kubectl('label', 'namespace', SHOP, 'team=shop', '--overwrite');
  for (const network of [SELECTIVE, ...CLOSED, TRUSTING, WARY]) await send('POST', networks(), network);
  const agent = await as('node-dataplane', 'n1');
  // The API server's policies learn of Networks and labels a moment later.
  const [selected, ...others] = mayJoin;
  await until('the labels are known', async () => (await answerTo(agent, selected![1])) === 'taken');
  const areRefused = async (): Promise<boolean> =>
    !(await answersTo(agent, mayNotJoin)).some(([, answer]) => answer === 'taken');
  await until('the Networks are known', areRefused);
  expect(await answersTo(agent, mayNotJoin)).toEqual(refusals(mayNotJoin));
  expect(await answersTo(agent, others)).toEqual(taken(others));
});

test('an agent whose token names no node writes nothing', async () => {
  const nobody = await as('node-dataplane');
  for (const [, write] of agentMay) expect(await answerTo(nobody, write)).toMatchObject({ status: 403 });
});

test('with its own rights it numbers, protects, removes and tells; nothing that it asks is refused', async () => {
  const app = world.start('--kubeconfig', await kubeconfigOf(api, 'l2-networks'));
  await world.addNetwork('bad', { prefixes: ['192.0.2.0/24', '192.0.2.0/25'] });
  await until('numbered', async () => (await world.network('bad')).status?.number !== undefined);
  await world.clients.nodes.delete('n1');
  // Entry 3 was for the endpoint of n1, and 4 is of nobody yet.
  await until(
    'orphans are gone',
    async () =>
      (await world.standing()).join() === ['e2', fdbObject(2).metadata.name, fdbObject(4).metadata.name].join(),
  );
  const { events } = coreClients(api.cluster);
  await until('an Event', async () => (await events.listAll()).some(({ reason }) => reason === 'PrefixesOverlap'));
  expect(await app.stop()).toBe(0);
  expect(app.log.filter((line) => JSON.stringify(line).includes('"status":403'))).toEqual([]);
});

test('whatever roles of the cluster allow, policies refuse what is not theirs; others are not affected', async () => {
  const controller = await as('l2-networks');
  const agent = await as('node-dataplane', 'n1');
  const subjects = ['l2-networks', 'node-dataplane'].map((name) => `--serviceaccount=${NAMESPACE}:${name}`);
  api.kubectl('create', 'clusterrolebinding', 'everything', '--clusterrole=cluster-admin', ...subjects);
  await until('the role is known', async () => {
    const probes = [answerTo(controller, controllerMayNot[0]![1]), answerTo(agent, agentMay[0]![1])];
    return !JSON.stringify(await Promise.all(probes)).includes(' cannot ');
  });
  expect(await answersTo(controller, controllerMayNot)).toEqual(refusals(controllerMayNot));
  expect(await answersTo(agent, agentMayNot)).toEqual(refusals(agentMayNot));
  expect(await answersTo(agent, agentMay)).toEqual(taken(agentMay));
  api.kubectl('delete', 'clusterrolebinding', 'everything');
  expect(await answersTo(api.cluster, agentMayNot)).toEqual(taken(agentMayNot));
});
