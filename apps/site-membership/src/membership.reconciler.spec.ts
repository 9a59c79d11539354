import { createObjectWrites } from '@unbounded/controller-runtime';
import {
  annotations,
  type Condition,
  type GatewayPool,
  type Site,
  type SiteNode,
  type SiteNodeSlice,
  type SitePeering,
} from '@unbounded/crds';
import type { EventRecord, Node } from '@unbounded/kube';
import { MOST_AT_ONCE, SLOWEST_MS } from '@unbounded/membership';
import { createMetrics, silentLogger } from '@unbounded/telemetry';
import { nodeObject, objectStore, publicKeyFor, siteObject } from '@unbounded/testing';
import { expect, test } from 'vitest';

import { addressOf, nodeNames } from './many-nodes.testdata.ts';
import { membershipReconciler } from './membership.reconciler.ts';
import { membershipMetrics } from './membership-metrics.ts';
import { NODE_CONDITION } from './node-conditions.plan.ts';
import { createNodeWrites } from './node-writes.ts';

/** One node that changes what it states as fast as it can, in the second of two full slices. */

const NODES = 1000;
const [HOSTILE, NEIGHBOR] = ['n0700', 'n0800'];
const STEP_MS = 1000;

const plain = (name: string, key = name): Node =>
  nodeObject({
    name,
    internalIPs: [addressOf(name)],
    annotations: { [annotations.wireGuardPublicKey]: publicKeyFor(key) },
  });
const hostile = (step: number): Node =>
  nodeObject({
    name: HOSTILE,
    // Every third time in no Site.
    internalIPs: [step % 3 === 0 ? '192.0.2.1' : `10.1.100.${step % 250}`],
    externalIPs: [`198.51.100.${step % 250}`],
    annotations: {
      [annotations.wireGuardPublicKey]: publicKeyFor(`${step}`),
      [annotations.wireGuardNextPublicKey]: publicKeyFor(`${step + 1}`),
      [annotations.wireGuardKeyGeneration]: `${step}`,
      [annotations.tunnelProtocols]: step % 2 === 0 ? 'VXLAN' : 'WireGuard',
      [annotations.features]: step % 2 === 0 ? 'node-addresses' : '',
      [annotations.externalAddress]: `gw${step}.example.com`,
    },
  });

const cluster = () => {
  let nowMs = 0;
  const nodes = objectStore<Node>(...nodeNames(NODES).map((name) => plain(name)));
  const sites = objectStore<Site>(siteObject('a'));
  const slices = objectStore<SiteNodeSlice>();
  const [pools, peerings] = [objectStore<GatewayPool>(), objectStore<SitePeering>()];
  const events: EventRecord[] = [];
  const metrics = createMetrics();
  const common = {
    recorder: { record: (event: EventRecord) => void events.push(event), flush: async () => {}, dropped: 0 },
    logger: silentLogger,
  };
  const writes = () => createObjectWrites({ ...common, metrics, now: () => nowMs });
  const nodeWrites = createNodeWrites({ ...common, client: nodes.client, writes: writes() });
  const reconcile = membershipReconciler({
    ...common,
    caches: {
      nodes: nodes.cache,
      sites: sites.cache,
      slices: slices.cache,
      pools: pools.cache,
      peerings: peerings.cache,
    },
    clients: { sites: sites.client, slices: slices.client, peerings: peerings.client },
    metrics: membershipMetrics(metrics),
    writes: writes(),
    nodeWrites,
    elapsed: () => nowMs,
  });
  const listed = (name: string): SiteNode | undefined =>
    slices.cache.list().flatMap((slice) => slice.nodes?.filter((entry) => entry.name === name) ?? [])[0];
  return {
    nodes,
    sites,
    slices,
    events,
    metrics,
    pass: (ms: number) => void (nowMs += ms),
    round: async () => {
      const verdict = await reconcile('cluster', AbortSignal.timeout(60_000));
      await nodeWrites.reconcile('nodes', AbortSignal.timeout(60_000));
      return verdict;
    },
    listed,
    keyOf: (name: string) => listed(name)?.wireGuardPublicKey,
    condition: (name: string) =>
      (nodes.get(name)?.status?.conditions as readonly Condition[] | undefined)?.find(
        ({ type }) => type === NODE_CONDITION,
      ),
  };
};

/** Agents write no conditions of ours: theirs stay. */
const stateNode = ({ nodes }: ReturnType<typeof cluster>, node: Node): void => {
  const conditions = nodes.get(node.metadata.name)?.status?.conditions;
  nodes.put({ ...node, status: { ...node.status, ...(conditions ? { conditions } : {}) } });
};

test('one of 1,000 nodes changes slices and its Site at the stated rate, and its neighbours’ changes are listed at once', async () => {
  const world = cluster();
  const { sites, slices, pass, round, keyOf, condition, events } = world;
  await round();
  await round();
  const before = { slices: slices.writes, sites: sites.writes };
  const minutes = 3;
  let neighborChanges = 0;
  for (let step = 1; step * STEP_MS <= minutes * SLOWEST_MS; step++, pass(STEP_MS)) {
    stateNode(world, hostile(step));
    if (step % 30 === 29) {
      stateNode(world, plain(NEIGHBOR, `neighbor ${step}`));
      neighborChanges++;
    }
    await round();
    if (step % 30 === 29) expect(keyOf(NEIGHBOR)).toBe(publicKeyFor(`neighbor ${step}`));
  }
  expect(neighborChanges).toBeGreaterThan(4);
  expect(condition(NEIGHBOR)).toBeUndefined();
  expect(slices.writes - before.slices).toBeLessThanOrEqual(MOST_AT_ONCE + minutes + neighborChanges);
  expect(sites.writes - before.sites).toBeLessThanOrEqual(2 * (MOST_AT_ONCE + minutes));
  expect(condition(HOSTILE)).toMatchObject({ status: 'False', reason: 'FactsDamped' });
  expect(
    events.filter(({ about, reason }) => about.metadata.name === HOSTILE && reason === 'FactsDamped'),
  ).toHaveLength(1);
  expect(await world.metrics.render()).toContain('unbounded_net_controller_damped_nodes 1');
});

test('the last value of a damped node is listed when its turn comes, and its condition turns good, although nothing changes any more', async () => {
  const world = cluster();
  const { pass, round, keyOf, condition } = world;
  await round();
  for (let step = 1; step <= 20; step++) {
    stateNode(world, hostile(3 * step + 1));
    await round();
  }
  expect(keyOf(HOSTILE)).not.toBe(publicKeyFor('61'));
  const turns: (string | undefined)[] = [];
  for (let verdict = await round(); verdict.kind === 'again'; verdict = await round()) {
    pass(verdict.afterMs);
    turns.push(keyOf(HOSTILE));
  }
  expect(keyOf(HOSTILE)).toBe(publicKeyFor('61'));
  expect(turns.length).toBeLessThan(5);
  expect(condition(HOSTILE)?.status).toBe('True');
});

test('a damped node that is deleted leaves its slice at once, and comes back as a new one', async () => {
  const world = cluster();
  const { nodes, round, listed, keyOf } = world;
  await round();
  for (let step = 1; step <= 20; step++) {
    stateNode(world, hostile(3 * step + 1));
    await round();
  }
  await nodes.client.delete(HOSTILE);
  await round();
  expect(listed(HOSTILE)).toBeUndefined();
  stateNode(world, plain(HOSTILE, 'anew'));
  await round();
  expect(keyOf(HOSTILE)).toBe(publicKeyFor('anew'));
});
