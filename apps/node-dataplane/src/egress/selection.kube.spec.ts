import {
  clusterStaticEgressIpKind,
  type EgressNodeSlice,
  egressNodeSliceKind,
  GROUP_VERSION,
  staticEgressIpKind,
  type StaticEgressRule,
} from '@unbounded/crds';
import { clientOf, namespaces, services } from '@unbounded/kube';
import { silentLogger as logger } from '@unbounded/telemetry';
import { type ApiServer, borrowApiServer, resetCluster, until } from '@unbounded/testing';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createClusterSource, createNodeSource } from '../world/cluster-source.ts';
import { type AskSelection, createAskSelection } from './selection.ts';
import { createSliceReports } from './slice-reports.ts';

/** What the agent asks the API server, and what it tells it. */

let api: ApiServer;
let ask: AskSelection;
beforeAll(async () => {
  api = await borrowApiServer();
  await resetCluster(api.cluster);
  ask = createAskSelection(api.cluster);
  await api.cluster.client(namespaces).create({ metadata: { name: 'shop', labels: { tier: 'front' } } });
});
afterAll(() => api?.stop());
afterEach(async () => {
  await clientOf(api.cluster, staticEgressIpKind)
    .delete('rule', { namespace: 'shop' })
    .catch(() => undefined);
  await clientOf(api.cluster, clusterStaticEgressIpKind)
    .delete('rule')
    .catch(() => undefined);
});

const common = { apiVersion: GROUP_VERSION, metadata: { name: 'rule' } } as const;
const addRule = (rule: Partial<StaticEgressRule>): Promise<unknown> =>
  clientOf(api.cluster, staticEgressIpKind).create({
    ...common,
    kind: 'StaticEgressIP',
    metadata: { name: 'rule', namespace: 'shop' },
    spec: { rules: [{ egressip: '192.0.2.200', ...rule }] },
  });
let asked = 0;
const web = (labels: Readonly<Record<string, string>> = { app: 'web' }, namespace = 'shop') =>
  ask({ namespace, name: 'web-0', uid: 'u1', labels: async () => (asked++, labels) });

test('without rules no pod is selected, and nobody asks for its labels', async () => {
  asked = 0;
  expect(await web()).toBe('none');
  expect(asked).toBe(0);
});

test('a rule is heeded from the moment on that it is written, by labels, in its namespace alone', async () => {
  await addRule({ podSelector: { matchLabels: { app: 'web' } } });
  expect(await web()).toBe('selected');
  expect(await web({ app: 'db' })).toBe('none');
  expect(await web({ app: 'web' }, 'default')).toBe('none');
});

test('a rule that is changed or replaced is heeded at once, though what the server sends otherwise are generations alone', async () => {
  const rules = clientOf(api.cluster, staticEgressIpKind);
  await addRule({ podSelector: { matchLabels: { app: 'web' } } });
  expect([await web(), await web()]).toEqual(['selected', 'selected']);
  await rules.mergePatch(
    'rule',
    { spec: { rules: [{ egressip: '192.0.2.200', podSelector: { matchLabels: { app: 'db' } } }] } },
    { namespace: 'shop' },
  );
  expect([await web(), await web({ app: 'db' })]).toEqual(['none', 'selected']);
  await rules.delete('rule', { namespace: 'shop' });
  await addRule({ podSelector: { matchLabels: { app: 'web' } } });
  expect([await web(), await web({ app: 'db' })]).toEqual(['selected', 'none']);
  const [listed] = await rules.listMetadata({ namespace: 'shop' });
  expect([listed?.metadata.generation, Object.keys(listed!).sort()]).toEqual([1, ['apiVersion', 'kind', 'metadata']]);
});

test('a Service selects pods that are not ready; one that is not there selects none', async () => {
  await addRule({ 'service-name': 'front' });
  expect(await web()).toBe('none');
  const ports = [{ port: 80 }];
  await api.cluster
    .client(services)
    .create({ metadata: { name: 'front', namespace: 'shop' }, spec: { selector: { app: 'web' }, ports } });
  expect(await web()).toBe('selected');
  expect(await web({ app: 'db' })).toBe('none');
});

test('rules of the cluster select by the labels of namespaces', async () => {
  const rule = { namespaceSelector: { matchLabels: { tier: 'front' } }, egressip: '192.0.2.200' };
  await clientOf(api.cluster, clusterStaticEgressIpKind).create({
    ...common,
    kind: 'ClusterStaticEgressIP',
    spec: { rules: [rule] },
  });
  expect(await web()).toBe('selected');
  expect(await web({}, 'default')).toBe('none');
});

test('an API server that does not answer, and labels that cannot be had, are no answer', async () => {
  await addRule({ podSelector: {} });
  const labels = (): Promise<never> => Promise.reject(new Error('no labels'));
  await expect(ask({ namespace: 'shop', name: 'web-0', uid: 'u1', labels })).rejects.toThrow('no labels');
});

const slice = (node: string): EgressNodeSlice => ({
  apiVersion: GROUP_VERSION,
  kind: 'EgressNodeSlice',
  metadata: { name: `${node}-0` },
  spec: {
    nodeName: node,
    nodeUID: `uid-${node}`,
    index: 0,
    owned: [{ address: '192.0.2.1', epoch: 1, announce: 'L2' }],
  },
});

test('an agent gets the slices of its own node alone, and confirms them', async () => {
  const client = clientOf(api.cluster, egressNodeSliceKind);
  for (const node of ['n1', 'n2']) await client.create(slice(node));
  const own = createNodeSource(api.cluster, 'n1', logger);
  const source = createClusterSource(
    api.cluster,
    { slices: egressNodeSliceKind },
    { own, logger, filters: { slices: { fieldSelector: 'spec.nodeName=n1' } } },
  );
  await until('the slices are listed', () => source.snapshot() !== undefined);
  const { slices } = source.snapshot()!.objects;
  expect(slices.map(({ metadata }) => metadata.name)).toEqual(['n1-0']);
  let heard = 0;
  let nowMs = 5000;
  const reports = createSliceReports(
    api.cluster,
    () => heard++,
    () => nowMs,
  );
  const networks = [{ interface: 'eth0', cidr: '192.0.2.0/24' }];
  const confirmed = { slices, isInForce: true, held: new Set(['192.0.2.1']), staying: new Set<string>(), networks };
  const write = async (): Promise<number> => {
    await reports.write(confirmed, AbortSignal.timeout(5000));
    return heard;
  };
  expect([await write(), await write()]).toEqual([1, 1]);
  const grants = { observedGeneration: 1, held: [{ address: '192.0.2.1', epoch: 1 }], subnets: networks };
  expect((await client.get('n1-0')).status).toMatchObject({ ...grants, heartbeat: 1 });
  nowMs = 9999;
  expect(await write()).toBe(1);
  nowMs = 10_000;
  expect(await write()).toBe(2);
  expect((await client.get('n1-0')).status).toMatchObject({ ...grants, heartbeat: 2 });
  await source.stop();
  await own.stop();
});
