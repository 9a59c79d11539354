import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { groupKey, nexthopGroup } from '@unbounded/bpf-maps';
import { type BpfObject, loadObject, mountBpffs, unmountBpffs } from '@unbounded/libbpf-ts';
import type { GroupMap } from '../../data-path/ebpf/map-groups.ts';
import type { HealthGroup } from './messages.ts';
import { are, makeNodes, planOf, PORT, type TestNode, type TestNodes } from './nodes.scenario.ts';

/** A worker and the gateways of its pool, and the map of next-hop groups that the worker's thread writes. */

const NAME = 'unbounded_nexthop_groups';
let world: TestNodes;
let object: BpfObject;
let map: GroupMap;
let bpffs: string;
let worker: TestNode;
let g1: TestNode;
let g2: TestNode;

beforeEach(() => {
  world = makeNodes('worker', 'g1', 'g2');
  [worker, g1, g2] = world.nodes as [TestNode, TestNode, TestNode];
  bpffs = join(world.folder, 'bpf');
  mountBpffs(bpffs);
  const bytes = readFileSync(join(import.meta.dirname, '../../../../../bpf/build/unbounded_encap.bpf.o'));
  object = loadObject(bytes, { name: 'health', maps: { [NAME]: { pinPath: join(bpffs, NAME) } } });
  map = object.map(NAME, groupKey, nexthopGroup);
});

afterEach(async () => {
  map.close();
  object.close();
  unmountBpffs(bpffs);
  await world[Symbol.asyncDispose]();
});

const SITE = 'edge';
const group = (changes: Partial<HealthGroup> = {}): HealthGroup => ({
  name: 'pool/edge/4',
  index: 7,
  family: 4,
  site: SITE,
  members: ['g1', 'g2'].map((node, at) => ({
    node,
    tier: 0,
    record: { remote: `192.0.2.${at + 1}`, vni: 1, ifindex: 5, protocol: 'vxlan', setKey: true, healthy: true },
  })),
  ...changes,
});

/** Weights in the kernel's map. */
const weights = (): number[] | undefined => map.get(7)?.map(({ weight }) => weight);
const weightsAre =
  (...wanted: number[]) =>
  () =>
    String(weights()) === String(wanted);
const startWorker = () => worker.start(join(bpffs, NAME)).apply(planOf(worker, [g1, g2], { groups: [group()] }));
const startGateway = (gateway: TestNode, ...servedSites: string[]) =>
  gateway.start().apply(planOf(gateway, [worker], { servedSites }));

test('a gateway that goes silent leaves the group, and comes back to it', async () => {
  await Promise.all([startWorker(), startGateway(g1, SITE), startGateway(g2, SITE)]);
  await worker.until(are('Healthy'));
  expect(weights()).toEqual([1, 1]);
  g1.run('ip', 'link', 'set', 'wire', 'down');
  const took = await worker.until(weightsAre(0, 1));
  console.log(`g1 left the group after ${Math.round(took)} ms`);
  expect(took).toBeLessThan(2000);
  g1.run('ip', 'link', 'set', 'wire', 'up');
  await worker.until(weightsAre(1, 1));
});

test('a gateway that went silent is not used again because the other one goes silent later', async () => {
  await Promise.all([startWorker(), startGateway(g1, SITE), startGateway(g2, SITE)]);
  await worker.until(are('Healthy'));
  g1.run('ip', 'link', 'set', 'wire', 'down');
  await worker.until(weightsAre(0, 1));
  await delay(1000); // longer than the detection time
  g2.run('ip', 'link', 'set', 'wire', 'down');
  await worker.until(are('Unhealthy'));
  expect(weights()).toEqual([0, 1]);
  g1.run('ip', 'link', 'set', 'wire', 'up');
  await worker.until(weightsAre(1, 0));
});

test('a gateway that never answers carries nothing once another is there, nor anything after its grace', async () => {
  await startWorker();
  expect(weights()).toEqual([1, 1]); // both are new
  await startGateway(g2, SITE);
  await worker.until(weightsAre(0, 1));
  await worker.until(are('Healthy', 'g2')); // in both families: one that is still New would stay so
  g2.block('udp', 'dport', '9997');
  await worker.until(are('Unhealthy', 'g2'));
  expect(weights()).toEqual([1, 0]); // g1 still has its grace
  await worker.until(weightsAre(0, 1)); // what was healthy once carries rather than what never was
});

test('a gateway that says it does not reach the site leaves the group of that site only', async () => {
  await Promise.all([startWorker(), startGateway(g1, SITE), startGateway(g2, 'other')]);
  await worker.until(weightsAre(1, 0));
  expect(await worker.until(are('Healthy'))).toBeLessThan(5000);
  const routed: HealthGroup = { ...group(), name: 'routed', index: 8 };
  const { site: _, ...ofNoSite } = routed;
  await worker.health.apply(planOf(worker, [g1, g2], { groups: [group(), ofNoSite] }));
  expect(map.get(8)?.map(({ weight }) => weight)).toEqual([1, 1]);
  await g2.health.apply(planOf(g2, [worker], { servedSites: [SITE] }));
  await worker.until(weightsAre(1, 1));
});

test('a gateway that died while the agent was away is given up as soon as others answer', async () => {
  await Promise.all([startWorker(), startGateway(g1, SITE), startGateway(g2, SITE)]);
  await worker.until(are('Healthy'));
  await worker.health.stop();
  g1.run('ip', 'link', 'set', 'wire', 'down');
  worker.block('udp', 'dport', String(PORT)); // nobody answers
  await startWorker();
  expect(weights()).toEqual([1, 1]);
  worker.unblock();
  expect(await worker.until(weightsAre(0, 1))).toBeLessThan(3000); // and not after the ten seconds of a common start
});

test('a group that somebody changes is put right by the next plan, and one that is planned no more goes when told', async () => {
  await startWorker();
  map.set(7, []);
  await worker.health.apply(planOf(worker, [g1, g2], { groups: [group()] }));
  expect(weights()).toEqual([1, 1]);
  await worker.health.apply(planOf(worker, [g1, g2]));
  expect(weights()).toEqual([1, 1]);
  await worker.health.removeStale();
  expect(weights()).toBeUndefined();
});

test('a member that is not probed counts as healthy', async () => {
  await worker.start(join(bpffs, NAME)).apply(planOf(worker, [g1], { groups: [group()] }));
  expect(weights()).toEqual([0, 1]);
});

test('a thread that has ended is started anew, and goes on with the last plan', async () => {
  const nowhere = join(bpffs, 'absent');
  await expect(worker.start(nowhere).apply(planOf(worker, [g1, g2], { groups: [group()] }))).rejects.toThrow(
    'has ended',
  );
  object.map(NAME, groupKey, nexthopGroup).pin(nowhere);
  await worker.until(weightsAre(1, 1));
  await worker.until(are('New', 'g1', 'g2'));
});
