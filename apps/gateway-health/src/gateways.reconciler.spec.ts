import { createObjectWrites } from '@unbounded/controller-runtime';
import {
  annotations,
  type GatewayPool,
  type GatewayPoolNode,
  type GatewayPoolPeering,
  type Mesh,
  nodeConditions,
  type Site,
  type SiteGatewayPoolAssignment,
  type SiteNodeSlice,
  type SitePeering,
} from '@unbounded/crds';
import type { EventRecord, Node } from '@unbounded/kube';
import { MOST_AT_ONCE, SLOWEST_MS } from '@unbounded/membership';
import { createMetrics, silentLogger } from '@unbounded/telemetry';
import { nodeObject, objectStore, poolObject, publicKeyFor, siteObject } from '@unbounded/testing';
import { expect, test } from 'vitest';

import { gatewaysReconciler } from './gateways.reconciler.ts';
import { gatewayMetrics } from './gateway-metrics.ts';
import { planRelayKeys } from './relay-keys.plan.ts';

/** A gateway that changes what it states, or whose DNS name changes its answers, as fast as it can, beside others. */

const STEP_MS = 1000;
const NAME = 'gw.example.com';

const gateway = (name: string, index: number, stated: Readonly<Record<string, string>> = {}, key = name): Node =>
  nodeObject({
    name,
    internalIPs: [`10.1.0.${index}`],
    externalIPs: [`192.0.2.${index}`],
    labels: { gateway: 'p' },
    annotations: { [annotations.wireGuardPublicKey]: publicKeyFor(key), ...stated },
  });
const workers = Array.from({ length: 200 }, (_, index) =>
  nodeObject({
    name: `w${index}`,
    internalIPs: [`10.1.1.${index}`],
    annotations: { [annotations.wireGuardPublicKey]: publicKeyFor(`w${index}`) },
  }),
);
/** Without the answer: an agent that does what it can. */
const hostile = (step: number): Node =>
  gateway(
    'hostile',
    step % 200,
    {
      [annotations.wireGuardKeyGeneration]: `${step}`,
      [annotations.tunnelProtocols]: step % 2 === 0 ? 'VXLAN' : 'WireGuard',
      [annotations.features]: step % 2 === 0 ? 'node-addresses' : '',
      // By turns without names, and with others.
      ...(step % 3 === 0 ? {} : { [annotations.externalAddress]: `gw${step}.example.com` }),
    },
    `${step}`,
  );
/** What its agent says of its own forwarding. */
const forwards = (does: boolean, key = 'hostile'): Node => {
  const node = gateway('hostile', 201, {}, key);
  const condition = { type: nodeConditions.forwarding, status: does ? 'True' : 'False', reason: 'HostFirewallBlocks' };
  return { ...node, status: { ...node.status, conditions: [condition] } };
};
const named = gateway('hostile', 201, { [annotations.externalAddress]: NAME });

const cluster = (subject: Node) => {
  let nowMs = 0;
  let answer: readonly string[] = ['203.0.113.1'];
  const nodes = objectStore<Node>(subject, gateway('neighbor', 202), ...workers);
  const pools = objectStore<GatewayPool>(poolObject('p'));
  const poolNodes = objectStore<GatewayPoolNode>();
  const assignments = objectStore<SiteGatewayPoolAssignment>();
  const poolPeerings = objectStore<GatewayPoolPeering>();
  const events: EventRecord[] = [];
  const metrics = createMetrics();
  const recorder = { record: (event: EventRecord) => void events.push(event), flush: async () => {}, dropped: 0 };
  const reconcile = gatewaysReconciler({
    caches: {
      nodes: nodes.cache,
      pools: pools.cache,
      poolNodes: poolNodes.cache,
      assignments: assignments.cache,
      poolPeerings: poolPeerings.cache,
      sites: objectStore<Site>(siteObject('a')).cache,
      slices: objectStore<SiteNodeSlice>().cache,
      sitePeerings: objectStore<SitePeering>().cache,
      meshes: objectStore<Mesh>().cache,
    },
    clients: {
      nodes: nodes.client,
      pools: pools.client,
      poolNodes: poolNodes.client,
      assignments: assignments.client,
      poolPeerings: poolPeerings.client,
    },
    metrics: gatewayMetrics(metrics),
    recorder,
    writes: createObjectWrites({ recorder, logger: silentLogger, metrics, now: () => nowMs }),
    names: { look: () => {}, get: () => ({ addresses: answer }), on: () => {} },
    lookAgainMs: 10_000,
    elapsed: () => nowMs,
  });
  const listed = (name: string) => pools.get('p')?.status?.nodes?.find((entry) => entry.name === name);
  return {
    pools,
    events,
    metrics,
    listed,
    answer: (addresses: readonly string[]) => void (answer = addresses),
    /** A Node's port and taint, which we gave it, stay. */
    state: (node: Node) => {
      const { metadata, spec = {} } = nodes.get(node.metadata.name)!;
      const port = metadata.annotations?.[annotations.wireGuardPort];
      const ports = port === undefined ? {} : { [annotations.wireGuardPort]: port };
      nodes.put({
        ...node,
        metadata: { ...node.metadata, annotations: { ...node.metadata.annotations, ...ports } },
        spec,
      });
    },
    relayKeys: () => planRelayKeys([], pools.cache.list()).text,
    pass: (ms: number) => void (nowMs += ms),
    round: () => reconcile('cluster', AbortSignal.timeout(60_000)),
  };
};
type Cluster = ReturnType<typeof cluster>;

const MINUTES = 5;
/** Versions of the pool's status and of the list of keys, while a neighbour's changes are listed at once. */
const versionsWhile = async (world: Cluster, change: (step: number) => void) => {
  const { pools, pass, round, state, listed, relayKeys } = world;
  for (let count = 0; count < 3; count++) await round();
  const before = pools.writes;
  const lists = new Set([relayKeys()]);
  for (let step = 1; step * STEP_MS <= MINUTES * SLOWEST_MS; step++, pass(STEP_MS)) {
    change(step);
    if (step % 100 === 99) state(gateway('neighbor', 202, {}, `neighbor ${step}`));
    await round();
    if (step % 100 === 99) expect(listed('neighbor')?.wireGuardPublicKey).toBe(publicKeyFor(`neighbor ${step}`));
    lists.add(relayKeys());
  }
  return { status: pools.writes - before, lists: lists.size - 1 };
};

test.each<[string, Node, (world: Cluster) => (step: number) => void]>([
  ['states', gateway('hostile', 201), (world) => (step) => world.state(hostile(step))],
  ['says of its forwarding', forwards(true), (world) => (step) => world.state(forwards(step % 2 === 0))],
  ['is said to be at by DNS', named, (world) => (step) => world.answer([`203.0.113.${step % 250}`])],
])(
  'what a gateway %s changes the pool at the stated rate, and its neighbours at once',
  async (_, subject, changing) => {
    const quiet = await versionsWhile(cluster(subject), () => {});
    const world = cluster(subject);
    const loud = await versionsWhile(world, changing(world));
    const most = MOST_AT_ONCE + MINUTES;
    expect(loud.lists - quiet.lists).toBeLessThanOrEqual(most);
    expect(loud.status - quiet.status).toBeLessThanOrEqual(most + 2); // the condition comes, and may go
    expect(await world.metrics.render()).toContain('unbounded_net_controller_damped_nodes 1');
  },
);

test('answers of DNS that change too often are told with the node and its pool, once, and the last one is listed', async () => {
  const world = cluster(named);
  const { pools, events, answer, listed, pass, round } = world;
  await round();
  for (let step = 1; step <= 20; step++) {
    answer([`203.0.113.${step}`]);
    await round();
  }
  expect(listed('hostile')?.externalIPs).toEqual(['203.0.113.6']); // the first answer, and five changes;
  const condition = pools.get('p')?.status?.conditions?.find(({ type }) => type === 'ExternalNamesResolved');
  expect(condition).toMatchObject({ status: 'False', reason: 'FactsDamped' });
  expect(condition?.message).toContain('hostile');
  const told = events.filter(({ reason, about }) => reason === 'FactsDamped' && about.metadata.name === 'hostile');
  expect(told).toHaveLength(1);
  const verdict = await round();
  if (verdict.kind !== 'again') throw new Error('nothing is due');
  expect(verdict.afterMs).toBeLessThan(10_000); // it waits for its turn, not for the next look
  pass(verdict.afterMs);
  await round();
  expect(listed('hostile')?.externalIPs).toEqual(['203.0.113.20']);
});

test('forwarding that a gateway says to and fro is told once, is said late, and delays no change of its facts', async () => {
  const world = cluster(forwards(true));
  const { pools, events, state, listed, pass, round } = world;
  const said = () => pools.get('p')?.status?.conditions?.find(({ type }) => type === 'GatewaysForwarding')?.status;
  await round();
  for (let step = 1; step <= 20; step++) {
    state(forwards(step % 2 === 0));
    await round();
  }
  state(forwards(true, 'another key'));
  await round();
  expect(listed('hostile')?.wireGuardPublicKey).toBe(publicKeyFor('another key'));
  expect(said()).toBe('False'); // after five changes
  expect(events.filter(({ reason }) => reason === 'ForwardingDamped')).toHaveLength(1);
  const verdict = await round();
  if (verdict.kind !== 'again') throw new Error('nothing is due');
  pass(verdict.afterMs);
  await round();
  expect(said()).toBe('True');
});
