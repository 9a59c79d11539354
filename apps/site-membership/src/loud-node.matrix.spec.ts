import { setTimeout as delay } from 'node:timers/promises';
import { annotations, siteKind, siteNodeSliceKind } from '@unbounded/crds';
import { clientOf, coreClients } from '@unbounded/kube';
import { MOST_AT_ONCE, SLOWEST_MS } from '@unbounded/membership';
import {
  type ApiServer,
  type AppProcess,
  createNode,
  installAccessRules,
  kubeconfigOf,
  publicKeyFor,
  resetCluster,
  siteObject,
  startApiServer,
  startApp,
  until,
} from '@unbounded/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addressOf, inBatches, nodeName, nodeNames } from './many-nodes.testdata.ts';

/** A node that changes its facts as fast as an API server takes them, beside 999 others: the program and the API server are real. */

const NODES = 1000;
/** In the second of two full slices, as its neighbors are. */
const LOUD = nodeName(700);
/** Each changes once beside a quiet node and once beside a loud one: nobody but the loud node is slowed. */
const NEIGHBORS = Array.from({ length: 12 }, (_, index) => nodeName(800 + index));
const BETWEEN_MS = 10_000;
const MINUTES = (NEIGHBORS.length * BETWEEN_MS) / SLOWEST_MS;

let api: ApiServer;
let app: AppProcess;
beforeAll(async () => {
  api = await startApiServer();
  await resetCluster(api.cluster);
  await installAccessRules(api);
  const kubeconfig = await kubeconfigOf(api, 'site-membership');
  await clientOf(api.cluster, siteKind).create(siteObject('a', { nodeCidrs: ['10.0.0.0/8'] }));
  await inBatches(nodeNames(NODES), (name) =>
    createNode(nodes(), {
      name,
      internalIPs: [addressOf(name)],
      annotations: { [annotations.wireGuardPublicKey]: publicKeyFor(name) },
    }),
  );
  app = startApp('site-membership', ['--kubeconfig', kubeconfig]);
  await until('both slices', async () => (await secondSlice()).nodes?.length === NODES / 2, 60_000);
}, 120_000);
afterAll(async () => {
  await app?.stop('SIGKILL');
  await api?.stop();
});

const nodes = () => coreClients(api.cluster).nodes;
const slices = () => clientOf(api.cluster, siteNodeSliceKind);
const secondSlice = () => slices().get('a-1');
const state = (name: string, facts: Readonly<Record<string, string>>) =>
  nodes().mergePatch(name, { metadata: { annotations: facts } });

/** From a node's change until the slice has it. */
const listingMs = async (name: string, seed: string): Promise<number> => {
  const key = publicKeyFor(`${name} ${seed}`);
  const isListed = async () =>
    (await secondSlice()).nodes?.some((entry) => entry.name === name && entry.wireGuardPublicKey === key) === true;
  const start = performance.now();
  await state(name, { [annotations.wireGuardPublicKey]: key });
  await until(`${name} with its key`, isListed, SLOWEST_MS);
  return performance.now() - start;
};
/** Of all neighbors, one after the other: the median. */
const medianListingMs = async (seed: string): Promise<number> => {
  const times: number[] = [];
  for (const name of NEIGHBORS) {
    const next = delay(BETWEEN_MS);
    times.push(await listingMs(name, seed));
    await next;
  }
  return times.toSorted((a, b) => a - b)[times.length >> 1]!;
};

/** Changes its facts without a pause until told to stop. @returns how often */
const beLoud = async (signal: AbortSignal): Promise<number> => {
  let step = 0;
  for (; !signal.aborted; step++)
    await state(LOUD, {
      [annotations.wireGuardPublicKey]: publicKeyFor(`loud ${step}`),
      [annotations.tunnelProtocols]: step % 2 === 0 ? 'VXLAN' : 'WireGuard',
    });
  return step;
};

/** How often slices were written: an API server counts it. */
const versions = async (): Promise<number> =>
  (await slices().listAll()).reduce((sum, { metadata }) => sum + metadata.generation!, 0);

test('beside 999 others one node changes its facts as fast as an API server takes it: slices at the stated rate, neighbors at once', async () => {
  const quietMs = await medianListingMs('quiet');
  const before = await versions();
  const stop = new AbortController();
  const loud = beLoud(stop.signal);
  const loudMs = await medianListingMs('loud');
  stop.abort();
  const changes = await loud;
  const written = (await versions()) - before;
  console.log({ changes, written, quietMs: Math.round(quietMs), loudMs: Math.round(loudMs), MINUTES });
  expect(changes).toBeGreaterThan(100 * MINUTES);
  expect(written).toBeLessThanOrEqual(NEIGHBORS.length + MOST_AT_ONCE + MINUTES);
  // Both processors are busy with the loud node; one that is delayed on purpose would wait for seconds.
  expect(loudMs).toBeLessThan(3 * quietMs + 200);
}, 400_000);
