import { createObjectWrites } from '@unbounded/controller-runtime';
import { type EgressIPPool, type EgressNodeSlice, GROUP_VERSION, type StaticEgressIP } from '@unbounded/crds';
import type { EventRecord, Node, Pod } from '@unbounded/kube';
import { createMetrics, silentLogger } from '@unbounded/telemetry';
import { beforeEach, expect, test, vi } from 'vitest';

import { snapshotOf } from './cluster/snapshot.ts';
import { egressMetrics } from './egress-metrics.ts';
import { egressReconciler } from './egress.reconciler.ts';
import { conflict, invalid, type LaggingStore, laggingStore } from './lagging-store.testdata.ts';
import { createOwnWrites } from './writes/own-writes.ts';

const CREATED = '2026-01-01T00:00:00Z';
const node = (name: string, ip: string): Node => ({
  metadata: { name, uid: `uid-${name}`, creationTimestamp: CREATED },
  status: { addresses: [{ type: 'InternalIP', address: ip }], conditions: [{ type: 'Ready', status: 'True' }] },
});
const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p1', namespace: 'shop', uid: 'uid-p1', labels: { app: 'web' } },
  spec: { nodeName: 'n1', containers: [] },
  status: { phase: 'Running', podIPs: [{ ip: '10.244.1.7' }] },
} as Pod;
const rule: StaticEgressIP = {
  apiVersion: GROUP_VERSION,
  kind: 'StaticEgressIP',
  metadata: { name: 'partner', namespace: 'shop', uid: 'uid-partner', creationTimestamp: CREATED, generation: 1 },
  spec: { rules: [{ podSelector: {}, egressip: '192.0.2.200', cidr: '0.0.0.0/0' }] },
};
const pool: EgressIPPool = {
  apiVersion: GROUP_VERSION,
  kind: 'EgressIPPool',
  metadata: { name: 'public', creationTimestamp: CREATED },
  spec: { blocks: ['192.0.2.208/28'] },
};
const SUBNETS = [{ interface: 'eth0', cidr: '192.0.2.0/24' }];

let slices: LaggingStore<EgressNodeSlice>;
let rules: LaggingStore<StaticEgressIP>;
let pods: readonly Pod[];
let events: EventRecord[];
let untilKnownMs: number;
let hasNews: boolean;
let nowMs: number;
let term: AbortController;
let round: () => Promise<unknown>;

beforeEach(() => {
  slices = laggingStore('EgressNodeSlice');
  // A rule is known by its name alone here: its namespace is no part of the key of the store.
  rules = laggingStore('StaticEgressIP', rule);
  const pools = laggingStore<EgressIPPool>('EgressIPPool');
  [pods, events, untilKnownMs, nowMs, term] = [[pod], [], 0, 0, new AbortController()];
  hasNews = true;
  const recorder = { record: (event: EventRecord) => void events.push(event), flush: async () => {}, dropped: 0 };
  const ownWrites = createOwnWrites([slices, { ...rules, cache: byNamespace(rules) }]);
  const metrics = createMetrics();
  const reconcile = egressReconciler({
    objects: () => ({
      rules: rules.cache.list(),
      clusterRules: [],
      pools: [pool],
      slices: slices.cache.list(),
      nodes: [node('n1', '192.0.2.1'), node('n2', '192.0.2.2')],
      pods,
      services: [],
      namespaces: [],
      sites: [],
    }),
    podOf: () => pods[0],
    snapshotOf: (objects) => snapshotOf(objects, { isAgentAlive: () => true, serviceCidrs: [], now: CREATED }),
    untilKnownMs: () => untilKnownMs,
    news: { take: () => hasNews },
    ownWrites,
    clients: {
      slices: ownWrites.noting(slices),
      rules: ownWrites.noting({ client: rules.client, cache: byNamespace(rules) }),
      clusterRules: laggingStore<never>('ClusterStaticEgressIP').client,
      pools: pools.client,
    },
    pace: async (signal) => signal.throwIfAborted(),
    writes: createObjectWrites({ recorder, logger: silentLogger, metrics }),
    recorder,
    metrics: egressMetrics(metrics),
    logger: silentLogger,
    elapsed: () => nowMs,
  });
  round = () => reconcile('cluster', term.signal);
});

const byNamespace = (store: LaggingStore<StaticEgressIP>) => ({
  ...store.cache,
  get: (key: string) => store.cache.get(key.slice(key.indexOf('/') + 1)),
});
const catchUp = (): void => {
  slices.catchUp();
  rules.catchUp();
};
/** Agents report their networks, and rounds go on until one writes nothing. */
const settle = async (): Promise<void> => {
  for (let count = -1; count !== slices.writes.length + rules.writes.length;) {
    count = slices.writes.length + rules.writes.length;
    await round();
    for (const slice of slices.objects.values()) {
      if (!slice.status) slices.put({ ...slice, status: { subnets: SUBNETS } });
    }
    catchUp();
  }
};

test('slices are written before statuses, and at rest nothing is', async () => {
  await settle();
  expect(rules.objects.get('partner')?.status?.addresses).toMatchObject([{ address: '192.0.2.200', epoch: 1 }]);
  const before = [...slices.writes, ...rules.writes];
  expect(await round()).toEqual({ kind: 'done' });
  expect([...slices.writes, ...rules.writes]).toEqual(before);
});

test('without news there is no plan, unless the last one is not all written', async () => {
  hasNews = false;
  slices.onWrite = (name) => {
    if (name === 'n2-0') throw conflict();
  };
  await expect(round()).rejects.toThrow('conflict');
  slices.onWrite = () => {};
  catchUp();
  await round();
  catchUp();
  expect(slices.writes).toEqual(['create n1-0', 'create n2-0']);
  pods = [];
  expect(await round()).toEqual({ kind: 'done' });
  expect(slices.writes).toHaveLength(2);
  hasNews = true;
  await round();
  expect(slices.writes.length).toBeGreaterThan(2);
});

test('no plan is made before the caches show what the last one wrote', async () => {
  await round();
  const written = slices.writes.length;
  expect(written).toBeGreaterThan(0);
  expect(await round()).toEqual({ kind: 'again', afterMs: 100 });
  expect(slices.writes).toHaveLength(written);
  catchUp();
  expect(await round()).toEqual({ kind: 'done' });
});

test('a leader begins with what the leader before it wrote, not with an older cache', async () => {
  await settle();
  slices.put({ ...slices.objects.get('n1-0')!, status: { subnets: [] } });
  term = new AbortController();
  expect(await round()).toEqual({ kind: 'again', afterMs: 100 });
  catchUp();
  expect(await round()).toEqual({ kind: 'done' });
});

test('an object that is gone before the cache has shown it is asked for after a while', async () => {
  await round();
  for (const name of [...slices.objects.keys()]) await slices.client.delete(name);
  rules.catchUp();
  await round();
  nowMs += 5001;
  expect(await round()).toEqual({ kind: 'done' });
});

test('while it is not known which agents are alive nothing is planned', async () => {
  untilKnownMs = 700;
  expect(await round()).toEqual({ kind: 'again', afterMs: 700 });
  expect(slices.writes).toEqual([]);
});

test('a conflict in the middle ends the round without statuses; the next one goes on from what is there', async () => {
  slices.onWrite = (name) => {
    if (name === 'n2-0') throw conflict();
  };
  await expect(round()).rejects.toThrow('conflict');
  expect([slices.writes, rules.writes]).toEqual([['create n1-0'], []]);
  slices.onWrite = () => {};
  expect(await round()).toEqual({ kind: 'again', afterMs: 100 });
  await catchUpAnd(round);
  expect(slices.writes).toEqual(['create n1-0', 'create n2-0']);
  expect(rules.writes).toEqual(['apply partner']);
});

const catchUpAnd = (next: () => Promise<unknown>): Promise<unknown> => {
  catchUp();
  return next();
};

test('a slice that is refused for good holds up no other slice, and no status of a rule that it does not concern', async () => {
  const other = { ...rule, metadata: { ...rule.metadata, name: 'other', uid: 'uid-other' } };
  rules.put({
    ...other,
    spec: { rules: [{ podSelector: { matchLabels: { app: 'none' } }, egressip: '192.0.2.201' }] },
  });
  catchUp();
  slices.onWrite = (name) => {
    if (name === 'n1-0') throw invalid();
  };
  expect(await round()).toMatchObject({ kind: 'again' });
  expect(slices.writes).toEqual(['create n2-0']);
  expect(rules.writes).toEqual(['apply other']);
  expect(events.filter(({ reason }) => reason === 'WriteRefused')).toMatchObject([
    { reason: 'WriteRefused', about: { kind: 'EgressNodeSlice', metadata: { name: 'n1-0' } } },
  ]);
});

const fromPool = (name: string): StaticEgressIP => ({
  ...rule,
  metadata: { ...rule.metadata, name, uid: `uid-${name}` },
  spec: { rules: [{ podSelector: {}, pool: 'public', cidr: '0.0.0.0/0' }] },
});
const addressesOf = (name: string) => rules.objects.get(name)?.status?.addresses;
const ownedAddresses = (): string[] =>
  [...slices.objects.values()].flatMap(({ spec }) => (spec.owned ?? []).map(({ address }) => address));

test('what a pool gives to a rule stands in its status before any slice, and stays with it if these are not written', async () => {
  rules.put(fromPool('partner'));
  catchUp();
  slices.onWrite = (name) => {
    if (name === 'n2-0') throw conflict();
  };
  await expect(round()).rejects.toThrow('conflict');
  expect(addressesOf('partner')).toMatchObject([{ address: '192.0.2.208', rule: 0, pool: 'public' }]);
  expect(addressesOf('partner')?.[0]?.node).toBeUndefined();
  slices.onWrite = () => {};
  catchUp();
  await settle();
  expect(addressesOf('partner')).toMatchObject([{ address: '192.0.2.208', epoch: 1 }]);
});

test('a rule that somebody writes all the while gets no second address, and keeps none from others', async () => {
  rules.put(fromPool('partner'));
  rules.put({
    ...fromPool('other'),
    metadata: { ...fromPool('other').metadata, creationTimestamp: '2026-02-01T00:00:00Z' },
  });
  rules.onWrite = (name) => {
    if (name === 'partner') rules.put({ ...rules.objects.get(name)! });
  };
  for (let count = 0; count < 5; count++) {
    nowMs += 100;
    await settle();
  }
  expect(addressesOf('partner')).toBeUndefined();
  expect(ownedAddresses()).toEqual(['192.0.2.209']);
  expect(addressesOf('other')).toMatchObject([{ address: '192.0.2.209', epoch: 1 }]);
  rules.onWrite = () => {};
  await vi.waitFor(async () => {
    await settle();
    expect(addressesOf('partner')).toMatchObject([{ address: '192.0.2.208', epoch: 1 }]);
  });
});

test('a pod is told once that it cannot be covered, and not what was so before the term', async () => {
  const onHost = { ...pod, spec: { ...pod.spec, hostNetwork: true } } as Pod;
  const told = () => events.filter(({ reason }) => reason === 'EgressNotCovered').length;
  await settle();
  pods = [onHost];
  await settle();
  expect(told()).toBe(1);
  term = new AbortController();
  await settle();
  expect(told()).toBe(1);
});

test('a lost Lease ends the round', async () => {
  slices.onWrite = () => term.abort(new Error('no longer leader'));
  await expect(round()).rejects.toThrow('no longer leader');
  expect([slices.writes, rules.writes]).toEqual([['create n1-0'], []]);
});
