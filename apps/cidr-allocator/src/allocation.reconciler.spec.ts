import { createObjectWrites, type Informer } from '@unbounded/controller-runtime';
import {
  annotations,
  GROUP_VERSION,
  type GatewayPool,
  type Mesh,
  type Site,
  type SiteNodeSlice,
} from '@unbounded/crds';
import { ApiError, type KubeObject, type Node, type ResourceClient } from '@unbounded/kube';
import { MOST_AT_ONCE, SLOWEST_MS } from '@unbounded/membership';
import { createMetrics, silentLogger } from '@unbounded/telemetry';
import { nodeObject, objectStore } from '@unbounded/testing';
import { expect, test } from 'vitest';

import { allocationReconciler } from './allocation.reconciler.ts';
import { allocatorMetrics } from './allocator-metrics.ts';
import { createCooldown } from './cooldown.ts';
import { poolFingerprint } from './underlay.plan.ts';

const site: Site = {
  apiVersion: GROUP_VERSION,
  kind: 'Site',
  metadata: { name: 'a' },
  spec: { nodeCidrs: ['10.1.0.0/16'], podCidrAssignments: [{ cidrBlocks: ['100.64.0.0/16'] }] },
};
const informerOf = <T extends KubeObject>(...objects: readonly T[]) =>
  ({ list: () => objects }) as unknown as Informer<T>;

interface Parts {
  readonly sites?: readonly Site[];
  readonly nodes?: readonly Node[];
  readonly nodeClient?: Partial<ResourceClient<Node>>;
}

/** Rounds over these objects; the status of Sites is written nowhere. */
const rounds = ({ sites = [], nodes = [], nodeClient = {} }: Parts) => {
  const recorder = { record: () => {}, flush: async () => {}, dropped: 0 };
  const metrics = createMetrics();
  const reconcile = allocationReconciler({
    nodes: informerOf<Node>(...nodes),
    sites: informerOf(...sites),
    pools: informerOf<GatewayPool>(),
    slices: informerOf<SiteNodeSlice>(),
    meshes: informerOf<Mesh>(),
    clusterAddresses: async () => ({ apiServers: [], services: [] }),
    cooldown: createCooldown(60),
    writes: createObjectWrites({ recorder, logger: silentLogger, metrics }),
    nodeClient: nodeClient as ResourceClient<Node>,
    siteClient: { apply: async () => site } as unknown as ResourceClient<Site>,
    recorder,
    metrics: allocatorMetrics(metrics),
    logger: silentLogger,
  });
  return () => reconcile('cluster', new AbortController().signal);
};
const round = (...sites: readonly Site[]) => rounds({ sites })();

test('addresses of API servers and Services, which nothing watches, are looked at again after 30 s', async () => {
  expect(await round(site)).toEqual({ kind: 'again', afterMs: 30_000 });
  expect(await round()).toEqual({ kind: 'done' });
});

test('while the API server refuses the block of a node all nodes are listed anew for an attempt, and not in the rounds between', async () => {
  const node = nodeObject({ name: 'n', internalIPs: ['10.1.0.1'] });
  const count = { listed: 0, patched: 0 };
  const next = rounds({
    sites: [site],
    nodes: [node],
    nodeClient: {
      async listAll() {
        count.listed++;
        return [node];
      },
      async mergePatch() {
        count.patched++;
        throw new ApiError('PATCH /nodes/n', 403, { reason: 'Forbidden' });
      },
    },
  });
  for (let index = 0; index < 5; index++) expect((await next()).kind).toBe('again');
  expect(count).toEqual({ listed: 1, patched: 1 });
});

test('a pool concerns the allocation when its nodes or their external addresses change, not when a gateway reports', () => {
  const pool = (externalIPs: readonly string[], rest: object = {}, generation = 1): GatewayPool => ({
    apiVersion: GROUP_VERSION,
    kind: 'GatewayPool',
    metadata: { name: 'p', generation },
    spec: { nodeSelector: { gw: 'p' } },
    status: { nodes: [{ name: 'g', wireGuardPublicKey: 'k', externalIPs }], ...rest },
  });
  const one = poolFingerprint(pool(['192.0.2.1']));
  expect(poolFingerprint(pool(['192.0.2.1'], { connectedSites: ['a'] }))).toBe(one);
  expect(poolFingerprint(pool(['192.0.2.2']))).not.toBe(one);
  expect(poolFingerprint(pool(['192.0.2.1'], {}, 2))).not.toBe(one);
});

test('a node whose address is in a block of pods by turns changes the status of its Site at a bounded rate', async () => {
  let nowMs = 0;
  const recorder = { record: () => {}, flush: async () => {}, dropped: 0 };
  const metrics = createMetrics();
  const nodes = objectStore<Node>();
  const sites = objectStore<Site>({ ...site, spec: { ...site.spec, nodeCidrs: ['10.1.0.0/16', '100.64.0.0/24'] } });
  const reconcile = allocationReconciler({
    nodes: nodes.cache,
    sites: sites.cache,
    pools: informerOf<GatewayPool>(),
    slices: informerOf<SiteNodeSlice>(),
    meshes: informerOf<Mesh>(),
    clusterAddresses: async () => ({ apiServers: [], services: [] }),
    cooldown: createCooldown(60),
    writes: createObjectWrites({ recorder, logger: silentLogger, metrics, now: () => nowMs }),
    nodeClient: nodes.client,
    siteClient: sites.client,
    recorder,
    metrics: allocatorMetrics(metrics),
    logger: silentLogger,
    elapsed: () => nowMs,
  });
  for (let step = 0; step < 300; step++, nowMs += 1000) {
    const internalIPs = [step % 2 === 0 ? '10.1.0.9' : '100.64.0.9'];
    nodes.put(nodeObject({ name: 'n', internalIPs, podCIDRs: ['100.64.3.0/24'] }));
    await reconcile('cluster', AbortSignal.timeout(60_000));
  }
  expect(sites.writes).toBeGreaterThan(2);
  expect(sites.writes).toBeLessThanOrEqual(1 + MOST_AT_ONCE + (300 * 1000) / SLOWEST_MS);
});

test('locators come with the prefix and go with it; without one no Node and no field of a Site is written for them', async () => {
  const recorder = { record: () => {}, flush: async () => {}, dropped: 0 };
  const metrics = createMetrics();
  const nodes = objectStore<Node>(nodeObject({ name: 'n', internalIPs: ['10.1.0.1'], podCIDRs: ['100.64.0.0/24'] }));
  const sites = objectStore<Site>(site);
  const meshes = objectStore<Mesh>();
  const reconcile = allocationReconciler({
    nodes: nodes.cache,
    sites: sites.cache,
    pools: informerOf<GatewayPool>(),
    slices: informerOf<SiteNodeSlice>(),
    meshes: meshes.cache,
    clusterAddresses: async () => ({ apiServers: [], services: [] }),
    cooldown: createCooldown(60),
    writes: createObjectWrites({ recorder, logger: silentLogger, metrics }),
    nodeClient: nodes.client,
    siteClient: sites.client,
    recorder,
    metrics: allocatorMetrics(metrics),
    logger: silentLogger,
  });
  const run = () => reconcile('cluster', AbortSignal.timeout(60_000));
  const shown = () => [
    nodes.get('n')?.metadata.annotations?.[annotations.l2Locator],
    sites.get('a')?.status?.l2LocatorBlock,
    sites.get('a')?.status?.conditions?.find(({ type }) => type === 'L2LocatorsAllocated')?.status,
  ];
  await run();
  expect([nodes.writes, sites.writes]).toEqual([0, 1]);
  expect(shown()).toEqual([undefined, undefined, undefined]);
  const mesh = { apiVersion: GROUP_VERSION, kind: 'Mesh', metadata: { name: 'default' } } as const;
  meshes.put({ ...mesh, spec: { l2: { locatorPrefix: 'fd53:ab:cd::/48' } } });
  await run();
  expect(shown()).toEqual(['fd53:ab:cd:1::/64', 'fd53:ab:cd::/52', 'True']);
  await run();
  expect([nodes.writes, sites.writes]).toEqual([1, 2]);
  meshes.put({ ...mesh, spec: {} });
  await run();
  expect(shown()[0]).toBeUndefined();
  expect([nodes.writes, sites.writes]).toEqual([2, 3]);
});
