import { type Cluster, serviceAccounts } from '@unbounded/kube';
import { openCluster } from '@unbounded/kube/open-cluster';
import { answerTo, type ApiServer, installAccessRules, kubeconfigOf, startApiServer, until } from '@unbounded/testing';
import { NAMESPACE } from '@unbounded/testing/chart';
import { answersTo, refusals, taken } from '@unbounded/testing/write-rows';
import { afterAll, beforeAll, expect, test } from 'vitest';

import {
  agentMay,
  agentMayNot,
  agentMayNotByPolicy,
  agentMayNotByRole,
  CONDITION,
  recordObject,
  records,
  registrarMay,
  registrarMayNot,
  registrarMayNotByRole,
  uninstallMay,
  uninstallMayNot,
  uninstallMayNotByRole,
} from './access.testdata.ts';
import { type ControlServer, startControlServer } from './control-server.testdata.ts';
import { createTestCluster, SHOP } from './test-cluster.testdata.ts';

/** What the programs may write, with the chart's own roles and policies. */

let api: ApiServer;
let control: ControlServer;
let world: ReturnType<typeof createTestCluster>;
const UNINSTALL = 'tailnet-registrar-uninstall';
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

const writeRecords = async (): Promise<void> => {
  const spec = { nodeName: 'n1', automountServiceAccountToken: false, containers: [{ name: 'c', image: 'i' }] };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p1', namespace: SHOP }, spec };
  await send('POST', `/api/v1/namespaces/${SHOP}/pods`, pod);
  for (const number of [1, 2]) await send('POST', records(), recordObject(number));
  const status = { deviceID: 'n1', conditions: [{ ...CONDITION, reason: 'Given' }], keysGiven: 1 };
  await send('PATCH', records('p1', 'status'), { status });
};

beforeAll(async () => {
  [api, control] = await Promise.all([startApiServer(), startControlServer()]);
  world = createTestCluster(api, control);
  await world.prepare();
  await installAccessRules(api, { 'tailnet-registrar': { enabled: true } });
  // The account of the agents is of their own chart.
  await api.cluster
    .client(serviceAccounts)
    .create({ metadata: { name: 'tailnet', namespace: NAMESPACE } })
    .catch(() => undefined);
  await writeRecords();
});
afterAll(async () => {
  for (const cluster of open) cluster.close();
  await world?.stopAll();
  await Promise.all([api?.stop(), control?.stop()]);
});

test('the registrar may write what it writes, and no more', async () => {
  const registrar = await as('tailnet-registrar');
  expect(await answersTo(registrar, registrarMay)).toEqual(taken(registrarMay));
  expect(await answersTo(registrar, registrarMayNotByRole)).toEqual(refusals(registrarMayNotByRole));
});

test('an agent says of the devices of its own node how they are, and nothing else', async () => {
  const agent = await as('tailnet', 'n1');
  expect(await answersTo(agent, agentMay)).toEqual(taken(agentMay));
  expect(await answersTo(agent, agentMayNot)).toEqual(refusals(agentMayNot));
  expect(await answersTo(agent, agentMayNotByRole)).toEqual(refusals(agentMayNotByRole));
});

test('an agent whose token names no node writes nothing', async () => {
  const nobody = await as('tailnet');
  for (const [, write] of agentMay) expect(await answerTo(nobody, write)).toMatchObject({ status: 403 });
});

test('the registrar reads the Secret that the chart names, and no other; an agent reads none', async () => {
  const secret = (name: string) =>
    ({ method: 'GET', path: `/api/v1/namespaces/${NAMESPACE}/secrets/${name}` }) as const;
  const [registrar, agent] = [await as('tailnet-registrar'), await as('tailnet', 'n1')];
  await registrar.transport.send(secret('tailscale-cni-oauth'));
  await expect(registrar.transport.send(secret('other'))).rejects.toThrow('cannot get');
  await expect(agent.transport.send(secret('tailscale-cni-oauth'))).rejects.toThrow('cannot get');
});

test('an uninstallation may remove the tailnet of a Mesh, and nothing else', async () => {
  const uninstall = await as(UNINSTALL);
  expect(await answersTo(uninstall, uninstallMayNot)).toEqual(refusals(uninstallMayNot));
  expect(await answersTo(uninstall, uninstallMayNotByRole)).toEqual(refusals(uninstallMayNotByRole));
  const read = (path: string) => uninstall.transport.send({ method: 'GET', path });
  for (const path of [`/api/v1/namespaces/${NAMESPACE}/secrets`, '/api/v1/pods', records('p1'), '/api/v1/namespaces'])
    await expect(read(path)).rejects.toThrow(' cannot ');
  expect(await answersTo(uninstall, uninstallMay)).toEqual(taken(uninstallMay));
  await world.mesh();
});

test('with its own rights it registers, refuses, tells and removes; nothing that it asks is refused', async () => {
  await world.prepare();
  const app = world.start('--kubeconfig', await kubeconfigOf(api, 'tailnet-registrar'));
  await world.addPod('web-0');
  await world.addPod('bad', { 'net.unbounded-cloud.io/tailnet-tags': 'tag:db' });
  await world.register('web-0');
  await until('an Event', async () =>
    (await world.clients.events.listAll({ namespace: SHOP })).some(({ reason }) => reason === 'TailnetRefused'),
  );
  await world.clear();
  expect(await app.stop()).toBe(0);
  expect(app.log.filter((line) => JSON.stringify(line).includes('"status":403'))).toEqual([]);
});

test('whatever roles of the cluster allow, policies refuse what is not theirs', async () => {
  await writeRecords();
  const [registrar, agent] = [await as('tailnet-registrar'), await as('tailnet', 'n1')];
  const subjects = ['tailnet-registrar', 'tailnet'].map((name) => `--serviceaccount=${NAMESPACE}:${name}`);
  api.kubectl('create', 'clusterrolebinding', 'everything', '--clusterrole=cluster-admin', ...subjects);
  await until('the role is known', async () => {
    const probes = [answerTo(registrar, registrarMayNot.at(-3)![1]), answerTo(agent, agentMayNotByPolicy.at(-1)![1])];
    return !JSON.stringify(await Promise.all(probes)).includes(' cannot ');
  });
  expect(await answersTo(registrar, registrarMayNot)).toEqual(refusals(registrarMayNot));
  expect(await answersTo(agent, agentMayNotByPolicy)).toEqual(refusals(agentMayNotByPolicy));
});
