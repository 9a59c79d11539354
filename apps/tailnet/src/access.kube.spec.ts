import { GROUP_VERSION, tailnetDeviceKind } from '@unbounded/crds';
import { type Cluster, coreClients } from '@unbounded/kube';
import { openCluster } from '@unbounded/kube/open-cluster';
import {
  answerTo,
  type ApiServer,
  borrowApiServer,
  createNode,
  installAccessRules,
  kubeconfigOf,
  ourPath,
  resetCluster,
  type Write,
} from '@unbounded/testing';
import { NAMESPACE } from '@unbounded/testing/chart';
import { refused } from '@unbounded/testing/write-rows';
import { afterAll, beforeAll, expect, test } from 'vitest';

/** What the agent of node n1 may do, with the chart's own roles and policies: all that the program needs, and no more. */

const SHOP = 'shop';
const records = (name = '', subresource = '') => ourPath(`namespaces/${SHOP}/tailnetdevices`, name, subresource);
const inShop = (resource: string, name = '') => `/api/v1/namespaces/${SHOP}/${resource}${name && `/${name}`}`;

let api: ApiServer;
let agent: Cluster;
const post = (path: string, body: object): Promise<unknown> =>
  api.cluster.transport.send({ method: 'POST', path, body });
const merge = (path: string, body: object): Write => ({ verb: 'merge', path, body });

const recordObject = (number: number) => ({
  ...{ apiVersion: GROUP_VERSION, kind: tailnetDeviceKind.kind },
  metadata: { name: `p${number}`, namespace: SHOP },
  spec: {
    ...{ node: `n${number}`, pod: `p${number}`, podUID: `u${number}`, hostName: `k8s-shop-p${number}` },
    ...{ tags: ['tag:k8s-pod'], controlURL: 'https://control.example.com' },
  },
});
const podObject = {
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p1', namespace: SHOP } },
  spec: { nodeName: 'n1', automountServiceAccountToken: false, containers: [{ name: 'c', image: 'i' }] },
};

beforeAll(async () => {
  api = await borrowApiServer();
  await resetCluster(api.cluster);
  await installAccessRules(api, { 'tailnet-registrar': { enabled: true }, tailnet: { enabled: true } });
  api.kubectl('create', 'namespace', SHOP);
  api.kubectl('create', 'serviceaccount', 'default', '--namespace', SHOP);
  await createNode(coreClients(api.cluster).nodes, { name: 'n1' });
  await post(inShop('pods'), podObject);
  for (const number of [1, 2]) await post(records(), recordObject(number));
  agent = openCluster({ kubeconfig: await kubeconfigOf(api, 'tailnet', 'n1') });
});
afterAll(async () => {
  agent?.close();
  await api?.stop();
});

const OWN = { fieldSelector: 'spec.node=n1' };

test.each<[what: string, path: string, query?: Readonly<Record<string, string>>]>([
  ['the records of its node', ourPath('tailnetdevices'), OWN],
  ['the Mesh', ourPath('meshes')],
  ['Sites', ourPath('sites')],
  ['a pod that starts', inShop('pods', 'p1')],
  ['the namespace of a pod', `/api/v1/namespaces/${SHOP}`],
])('the agent reads %s', async (_, path, query = {}) => {
  await expect(agent.transport.send({ method: 'GET', path, query })).resolves.toBeDefined();
});

test('the agent lists by the node, and says of a device of its own node how it is', async () => {
  const answer = await agent.transport.send({ method: 'GET', path: ourPath('tailnetdevices'), query: OWN });
  const { items } = answer as { items: { metadata: { name: string } }[] };
  expect(items.map(({ metadata }) => metadata.name)).toEqual(['p1']);
  const state = { status: { state: 'Running', addresses: ['100.64.0.1'] } };
  expect(await answerTo(agent, merge(records('p1', 'status'), state))).toBe('taken');
});

test.each([
  ['Secrets', `/api/v1/namespaces/${NAMESPACE}/secrets`],
  ['a Secret of its namespace', `/api/v1/namespaces/${NAMESPACE}/secrets/tailscale-cni-oauth`],
  ['Secrets of pods', inShop('secrets')],
  ['all pods', '/api/v1/pods'],
  ['all namespaces', '/api/v1/namespaces'],
  ['Nodes', '/api/v1/nodes/n1'],
  ['ConfigMaps', inShop('configmaps')],
])('the agent may not read %s', async (_, path) => {
  await expect(agent.transport.send({ method: 'GET', path })).rejects.toThrow(/ cannot (get|list) /);
});

test.each<[what: string, write: Write, refusal: string]>([
  ['the status of another node’s record', merge(records('p2', 'status'), { status: { state: 'Stopped' } }), 'own node'],
  ['a record', merge(records('p1'), { spec: { node: 'n2' } }), 'cannot'],
  ['the end of a record', { verb: 'delete', path: records('p1') }, 'cannot'],
  ['a pod', merge(inShop('pods', 'p1'), { metadata: { labels: { a: 'b' } } }), 'cannot'],
  ['the status of a pod', merge(`${inShop('pods', 'p1')}/status`, { status: {} }), 'cannot'],
  ['the end of a pod', { verb: 'delete', path: inShop('pods', 'p1') }, 'cannot'],
  ['a Node', merge('/api/v1/nodes/n1', { metadata: { labels: { a: 'b' } } }), 'cannot'],
  ['the status of the Mesh', merge(ourPath('meshes', 'default', 'status'), { status: {} }), 'cannot'],
  ['a Site', { verb: 'delete', path: ourPath('sites', 'a') }, 'cannot'],
])('the agent may not write %s', async (_, write, refusal) => {
  expect(await answerTo(agent, write)).toEqual(refused(refusal));
});

test('the keeper of devices may do nothing', async () => {
  const keeper = openCluster({ kubeconfig: await kubeconfigOf(api, 'tailnet-devices', 'n1') });
  for (const path of [ourPath('tailnetdevices'), ourPath('meshes'), inShop('pods', 'p1')])
    await expect(keeper.transport.send({ method: 'GET', path })).rejects.toThrow(' cannot ');
  keeper.close();
});
