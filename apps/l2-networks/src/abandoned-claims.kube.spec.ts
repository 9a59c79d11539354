import { createObjectWrites } from '@unbounded/controller-runtime';
import type { Cluster } from '@unbounded/kube';
import { openCluster } from '@unbounded/kube/open-cluster';
import type { L2ClusterSnapshot } from '@unbounded/l2';
import { type ApiServer, borrowApiServer, installAccessRules, kubeconfigOf } from '@unbounded/testing';
import { createMetrics, silentLogger } from '@unbounded/telemetry';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';

import { boundTo, fdb, fdbEntries, fdbObject } from './access.testdata.ts';
import { l2Metrics } from './l2-metrics.ts';
import { clientsOf } from './l2-objects.ts';
import { networksReconciler } from './networks.reconciler.ts';
import { createTestCluster } from './test-cluster.testdata.ts';

/** Entries of claims that ended between creation and status: passes under the chart's own roles and policies, at a time that the test sets. */

const ABANDONED_MS = 300_000;
let api: ApiServer;
let world: ReturnType<typeof createTestCluster>;
let [controller, agent]: Cluster[] = [];

beforeAll(async () => {
  api = await borrowApiServer();
  world = createTestCluster(api);
  await world.reset();
  await installAccessRules(api, { 'l2-networks': { enabled: true } });
});
beforeEach(async () => {
  await world.reset();
  for (const node of ['n1', 'n2']) await world.addNode(node);
  controller ??= openCluster({ kubeconfig: await kubeconfigOf(api, 'l2-networks') });
  agent?.close();
  agent = openCluster({ kubeconfig: await kubeconfigOf(api, 'node-dataplane', 'n1') });
});
afterAll(async () => {
  for (const cluster of [controller, agent]) cluster?.close();
  await world?.reset();
  await api?.stop();
});

/** As the agent of node n1. */
const create = (number: number) => agent!.transport.send({ method: 'POST', path: fdbEntries, body: fdbObject(number) });
const bind = (number: number) => {
  const contentType = 'application/merge-patch+json';
  return agent!.transport.send({ method: 'PATCH', path: fdb(number, 'status'), body: boundTo('n1'), contentType });
};

/** What caches would hold. */
const listed = async (): Promise<L2ClusterSnapshot> => {
  const { networks, endpoints, fdbEntries: stations, neighbors, nodes, pods } = clientsOf(controller!);
  return {
    isComplete: true,
    networks: await networks.listAll(),
    endpoints: await endpoints.listAll(),
    fdbEntries: await stations.listAll(),
    neighbors: await neighbors.listAll(),
    nodes: await nodes.listAll(),
    pods: await pods.listAll(),
  };
};

const createPasses = () => {
  let nowMs = 0;
  let snapshot: L2ClusterSnapshot;
  const [metrics, logger] = [createMetrics(), silentLogger];
  const recorder = { record: () => {}, flush: async () => {}, dropped: 0 };
  const reconcile = networksReconciler({
    ...{ snapshot: () => snapshot, recorder, logger, now: () => nowMs },
    ...{ metrics: l2Metrics(metrics), writes: createObjectWrites({ recorder, logger, metrics }) },
    clients: clientsOf(controller!),
  });
  return (given: L2ClusterSnapshot, afterMs = 0) => {
    [snapshot, nowMs] = [given, nowMs + afterMs];
    return reconcile('cluster', AbortSignal.timeout(20_000));
  };
};
const nameOf = (number: number): string => fdbObject(number).metadata.name;

test('what an agent made and never bound goes after five minutes; what was bound meanwhile to an endpoint without it, five minutes later', async () => {
  await world.attach(1, 'n1');
  for (const number of [6, 7, 8]) await create(number);
  const before = await world.standing();
  const pass = createPasses();
  expect(await pass(await listed())).toEqual({ kind: 'again', afterMs: ABANDONED_MS });
  await bind(7);
  expect(await pass(await listed(), ABANDONED_MS - 1)).toEqual({ kind: 'again', afterMs: 1 });
  expect(await world.standing()).toEqual(before);
  expect(await pass(await listed(), 1)).toEqual({ kind: 'again', afterMs: ABANDONED_MS - 1 });
  const gone = async () => {
    const standing = await world.standing();
    return before.filter((name) => !standing.includes(name));
  };
  expect(await gone()).toEqual([6, 8].map(nameOf));
  await bind(7);
  expect(await pass(await listed(), ABANDONED_MS - 1)).toEqual({ kind: 'done' });
  expect(await gone()).toEqual([6, 7, 8].map(nameOf));
});

test('an entry that its node binds while a pass removes it stays, and so does one that was made anew', async () => {
  await world.attach(1, 'n1');
  for (const number of [7, 8]) await create(number);
  const seen = await listed();
  const pass = createPasses();
  await pass(seen);
  await bind(7);
  await agent!.transport.send({ method: 'DELETE', path: fdb(8) });
  await create(8);
  expect(await pass(seen, ABANDONED_MS)).toMatchObject({ kind: 'again' });
  expect(await world.standing()).toEqual(expect.arrayContaining([7, 8].map(nameOf)));
  expect(await pass(await listed())).toMatchObject({ kind: 'again' });
  expect(await world.standing()).toEqual(expect.arrayContaining([7, 8].map(nameOf)));
});
