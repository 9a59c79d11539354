import { setTimeout as sleep } from 'node:timers/promises';

import { egressAnnotations } from '@unbounded/crds';
import { coreClients } from '@unbounded/kube';
import { type ApiServer, type AppProcess, borrowApiServer, expireLeases, until } from '@unbounded/testing';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';

import {
  createPod,
  createReadyNode,
  egressPool,
  prepareEgressCluster,
  staticEgress,
} from './egress-cluster.testdata.ts';
import { type SimulatedAgents, simulateAgents } from './simulated-agents.testdata.ts';
import { createTestController, leads, sliceWritesOf } from './test-controller.testdata.ts';

const ADDRESS = '192.0.2.200';
const RULE = { podSelector: {}, egressip: ADDRESS, cidr: '0.0.0.0/0' } as const;

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
  await createPod(api.cluster, 1);
});
afterEach(async () => {
  await controller.killAll();
  await agents[Symbol.asyncDispose]();
});
afterAll(() => api?.stop());

const settle = async (...args: string[]): Promise<AppProcess> => {
  await controller.clients.rules.create(staticEgress('partner', RULE));
  const app = controller.start(...args);
  await controller.settled(app);
  return app;
};
const sliceOf = (node: string) => controller.clients.slices.get(`${node}-0`);

test('at rest nothing is written, and a controller that is started anew writes nothing', async () => {
  const first = await settle();
  await sleep(500);
  const before = await controller.written();
  await sleep(1500);
  expect(await controller.written()).toEqual(before);
  await first.stop();
  const second = controller.start();
  const planned = /^unbounded_net_controller_egress_plan_duration_seconds_count [1-9]/m;
  await until('it has planned', async () => planned.test((await second.health('/metrics')).body));
  await sleep(500);
  expect(await controller.written()).toEqual(before);
  expect(await sliceWritesOf(second)).toBe(0);
});

test('of two replicas one writes; the other goes on when it is killed, and moves no address', async () => {
  const leader = await settle();
  const follower = controller.start();
  await until('the follower is ready', async () => (await follower.health('/readyz')).status === 200);
  const owner = await controller.owner(ADDRESS);
  await createPod(api.cluster, 2);
  await until('covered', async () => (await controller.rule()).status?.pods === 2);
  expect(await sliceWritesOf(follower)).toBe(0);
  await leader.stop('SIGKILL');
  await expireLeases(api.cluster);
  await createPod(api.cluster, 3);
  await until('covered by the follower', async () => (await controller.rule()).status?.pods === 3);
  expect(await sliceWritesOf(follower)).toBeGreaterThan(0);
  expect((await controller.rule()).status?.addresses).toMatchObject([{ node: owner, epoch: 1 }]);
});

test('a leader that is suspended until its Lease has run out writes nothing when it wakes up', async () => {
  const leader = await settle('--lease-duration', '3s');
  const follower = controller.start();
  await until('the follower is ready', async () => (await follower.health('/readyz')).status === 200);
  const before = await sliceWritesOf(leader);
  process.kill(leader.pid, 'SIGSTOP');
  await until('the follower leads', () => leads(follower));
  await createPod(api.cluster, 2);
  await until('covered by the follower', async () => (await controller.rule()).status?.pods === 2);
  process.kill(leader.pid, 'SIGCONT');
  await until('it leads no longer', () => !leads(leader));
  await createPod(api.cluster, 3);
  await until('covered', async () => (await controller.rule()).status?.pods === 3);
  expect(await sliceWritesOf(leader)).toBe(before);
});

test('a slice that someone edits or deletes is restored, and the address keeps its owner and epoch', async () => {
  await settle();
  const owner = (await controller.owner(ADDRESS))!;
  const other = ['n1', 'n2', 'n3'].find((name) => name !== owner)!;
  const { spec } = await sliceOf(owner);
  await controller.clients.slices.mergePatch(`${owner}-0`, { spec: { sources: [] } });
  await until('the sources are back', async () => ((await sliceOf(owner)).spec.sources ?? []).length === 1);
  await controller.clients.slices.delete(`${owner}-0`);
  await until('the slice is back', async () => (await sliceOf(owner)).spec.owned?.[0]?.address === ADDRESS);
  expect((await sliceOf(owner)).spec).toEqual(spec);
  await controller.clients.slices.delete(`${other}-0`);
  await until('that of another node, too', async () => (await sliceOf(other)).spec.nodeName === other);
  await controller.ready();
  expect((await controller.rule()).status?.addresses).toMatchObject([{ node: owner, epoch: 1 }]);
});

test('an owner that is silent keeps its address until an operator says that it is off', async () => {
  await settle();
  const owner = (await controller.owner(ADDRESS))!;
  agents.silent.add(owner);
  const silent = await until('it is told', async () => {
    const found = await controller.condition('OwnersElected');
    return found?.status === 'False' && found;
  });
  expect(silent).toMatchObject({ reason: 'OwnerSilent' });
  expect(silent.message).toContain(egressAnnotations.fenced);
  expect(await controller.owner(ADDRESS)).toBe(owner);
  const { nodes } = coreClients(api.cluster);
  await nodes.mergePatch(owner, { metadata: { annotations: { [egressAnnotations.fenced]: 'power is off' } } });
  await until('another node owns it', async () => {
    const now = await controller.owner(ADDRESS);
    return now !== undefined && now !== owner;
  });
  await controller.ready();
  expect((await controller.rule()).status?.addresses).toMatchObject([{ epoch: 2 }]);
});

test('others write to the slices all the time: what is planned is written, and no address has two owners', async () => {
  await controller.clients.pools.create(egressPool('public', { blocks: ['192.0.2.208/28'] }));
  await settle();
  let isDone = false;
  const disturb = async (): Promise<void> => {
    for (let count = 0; !isDone; count++) {
      const labels = { disturbed: String(count) };
      for (const { metadata } of await controller.clients.slices.listAll()) {
        await controller.clients.slices.mergePatch(metadata.name, { metadata: { labels } }).catch(() => undefined);
      }
    }
  };
  const disturbing = disturb();
  await controller.clients.rules.create(
    staticEgress('many', { podSelector: {}, pool: 'public', addresses: 8, cidr: '198.51.100.0/24' }),
  );
  await controller.ready('many');
  // Some addresses move to the nodes that come: each leaves its owner before the next one has it.
  for (const number of [4, 5]) await createReadyNode(api.cluster, number);
  await until('the new nodes own some', async () => {
    const nodes = new Set((await controller.rule('many')).status?.addresses?.map(({ node }) => node));
    return nodes.has('n4') || nodes.has('n5');
  });
  await controller.ready('many');
  isDone = true;
  await disturbing;
  expect(agents.doubleOwners).toEqual([]);
});
