import { setTimeout as sleep } from 'node:timers/promises';

import type { EgressNodeSlice } from '@unbounded/crds';
import { type ApiServer, startApiServer, until } from '@unbounded/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';

import {
  createPod,
  createReadyNode,
  egressPool,
  prepareEgressCluster,
  staticEgress,
} from './egress-cluster.testdata.ts';
import { simulateAgents } from './simulated-agents.testdata.ts';
import { createTestController, plansOf } from './test-controller.testdata.ts';

const [NODES, RULES, PODS, NEW_PODS] = [20, 200, 2000, 80];
const SETTLED_WITHIN_MS = 60_000;
const SEEN_WITHIN_MS = 1000;
/** Between pods that come. */
const PAUSE_MS = 250;
const AT_A_TIME = 20;

let api: ApiServer;
beforeAll(async () => {
  api = await startApiServer();
});
afterAll(() => api?.stop());

const labelOf = (number: number) => ({ app: `a${number % RULES}` });
const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

const inBatches = async (all: readonly number[], create: (number: number) => Promise<unknown>): Promise<void> => {
  for (let at = 0; at < all.length; at += AT_A_TIME) await Promise.all(all.slice(at, at + AT_A_TIME).map(create));
};

const newPod = (number: number): Promise<string> =>
  createPod(api.cluster, number, { node: `n${1 + (number % NODES)}`, labels: labelOf(number) });

/** When the routes of pods, and their owner's leave for them, were first seen with an address, by their UID. */
const watchSlices = (controller: ReturnType<typeof createTestController>) => {
  const ended = new AbortController();
  const [steered, translated] = [new Map<string, number>(), new Map<string, number>()];
  const note = ({ spec }: EgressNodeSlice): void => {
    const now = performance.now();
    for (const [list, seen] of [[spec.pods, steered] as const, [spec.sources, translated] as const])
      for (const { uid, addresses } of list ?? []) if (addresses.length > 0 && !seen.has(uid)) seen.set(uid, now);
  };
  const follow = async (): Promise<void> => {
    const { slices } = controller.clients;
    const listed = await slices.list({ signal: ended.signal });
    listed.items.forEach(note);
    const watch = slices.watch({ resourceVersion: listed.resourceVersion, timeoutSeconds: 600, signal: ended.signal });
    for await (const event of watch) if (event.type === 'ADDED' || event.type === 'MODIFIED') note(event.object);
  };
  let failure: unknown;
  const following = follow().catch((error: unknown) => {
    if (!ended.signal.aborted) failure = error;
  });
  return {
    count(): number {
      if (failure !== undefined) throw failure as Error; // nothing more will be seen
      return [...steered.keys()].filter((uid) => translated.has(uid)).length;
    },
    seenMs: (uid: string): number => Math.max(steered.get(uid) ?? Infinity, translated.get(uid) ?? Infinity),
    stop: async () => {
      ended.abort();
      await following;
      if (failure !== undefined) throw failure as Error;
    },
  };
};

test(`${RULES} rules and ${PODS} pods settle in 60 s, and a new pod is with its node and owner within 1 s at p95`, async () => {
  await prepareEgressCluster(api);
  for (const number of numbers(4, NODES)) await createReadyNode(api.cluster, number);
  await inBatches(numbers(1, PODS), newPod);
  const controller = createTestController(api);
  const { clients } = controller;
  await clients.pools.create(egressPool('public', { ranges: [{ from: '192.0.2.32', to: '192.0.2.254' }] }));
  for (const number of numbers(0, RULES - 1)) {
    const rule = { podSelector: { matchLabels: labelOf(number) }, pool: 'public', cidr: '0.0.0.0/0' };
    await clients.rules.create(staticEgress(`r${number}`, rule));
  }
  const agents = simulateAgents(api.cluster, { heartbeatMs: 5000 });
  const watch = watchSlices(controller);
  const startedMs = performance.now();
  const app = controller.start('--agent-timeout', '15s');
  await controller.settled(app, NODES, SETTLED_WITHIN_MS);
  await until('all pods are in the slices', () => watch.count() >= PODS, SETTLED_WITHIN_MS);
  const settledMs = performance.now() - startedMs;

  const plansBefore = await plansOf(app);
  const created: { readonly uid: string; readonly atMs: number }[] = [];
  for (const number of numbers(PODS + 1, PODS + NEW_PODS)) {
    const uid = await newPod(number);
    created.push({ uid, atMs: performance.now() });
    await sleep(PAUSE_MS);
  }
  await until('all new pods are in the slices', () => watch.count() >= PODS + NEW_PODS);
  const delays = created.map(({ uid, atMs }) => watch.seenMs(uid) - atMs).toSorted((a, b) => a - b);
  const at = (share: number): number => Math.round(delays[Math.ceil(delays.length * share) - 1]!);
  const plans = ((await plansOf(app)) - plansBefore) / NEW_PODS;
  console.log(
    `settled in ${Math.round(settledMs)} ms; a new pod after ${at(0.5)} ms (p50), ${at(0.95)} ms (p95), ${at(1)} ms (all); ${plans.toFixed(1)} plans a pod`,
  );
  await watch.stop();
  await controller.killAll();
  await agents[Symbol.asyncDispose]();
  expect(settledMs).toBeLessThan(SETTLED_WITHIN_MS);
  expect(at(0.95)).toBeLessThan(SEEN_WITHIN_MS);
}, 300_000);
