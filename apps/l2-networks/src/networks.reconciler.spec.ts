import { createObjectWrites } from '@unbounded/controller-runtime';
import {
  type FDBEntry,
  GROUP_VERSION,
  L2_ENDPOINT_FINALIZER,
  type Neighbor,
  type NetworkEndpoint,
} from '@unbounded/crds';
import { ApiError, type KubeObject, type ResourceClient } from '@unbounded/kube';
import type { L2ClusterSnapshot } from '@unbounded/l2';
import { createMetrics, silentLogger } from '@unbounded/telemetry';
import { afterEach, expect, test, vi } from 'vitest';

import { l2Metrics } from './l2-metrics.ts';
import { networksReconciler } from './networks.reconciler.ts';

/** Order and conditions of removals; what they are for a real API server is in l2-networks.kube.spec.ts. */

const status = { endpoint: 'shop/e1', managingNode: 'n1' };
const [mac, ip] = ['02:00:00:00:00:01', '192.0.2.1'];
const typed = { apiVersion: GROUP_VERSION } as const;
const endpoint: NetworkEndpoint = {
  ...{ ...typed, kind: 'NetworkEndpoint' },
  metadata: {
    namespace: 'shop',
    name: 'e1',
    uid: 'ue',
    resourceVersion: '7',
    finalizers: [L2_ENDPOINT_FINALIZER, 'a.b/c'],
  },
  spec: { network: 'lan', node: 'n1', pod: 'p1', interface: 'net1', mac, addresses: [ip] },
};
const fdb: FDBEntry = {
  ...{ ...typed, kind: 'FDBEntry', metadata: { name: 'fdb', uid: 'uf', resourceVersion: '8' } },
  ...{ spec: { network: 'lan', mac, source: 'static' }, status },
};
const neighbor: Neighbor = {
  ...{ ...typed, kind: 'Neighbor', metadata: { name: 'nbr', uid: 'un', resourceVersion: '9' } },
  ...{ spec: { network: 'lan', ip, source: 'static' }, status: { ...status, mac } },
};

const gone = (): ApiError => new ApiError('GET', 404, { reason: 'NotFound' });
const conflict = (): ApiError => new ApiError('DELETE', 409, { reason: 'Conflict' });

interface World extends Partial<L2ClusterSnapshot> {
  /** What a look at the API server finds, by name. */
  readonly found?: Readonly<Record<string, KubeObject>>;
  /** Names whose removal is a conflict. */
  readonly conflicts?: readonly string[];
  /** Names that may not be looked up. */
  readonly refused?: readonly string[];
  /** All of it is gone; the caches do not show it yet. */
  readonly isGone?: boolean;
}

/** Passes of one program, each over what it is given: what was written, and the verdict. */
const createPasses = (now: () => number, metrics = createMetrics()) => {
  let done: string[] = [];
  let world: World = {};
  const clientOf = <T extends KubeObject>(kind: string): ResourceClient<T> => {
    const client: Partial<ResourceClient<T>> = {
      listAll: async () => [],
      get: async (name) => {
        if (!/^[a-z0-9]+$/.test(name)) throw new Error(`a request for ${name}`);
        if (world.refused?.includes(name)) throw new ApiError('GET', 403, { reason: 'Forbidden' });
        const found = world.found?.[name];
        if (!found) throw gone();
        return found as T;
      },
      mergePatch: async (name, patch) => {
        if (world.isGone) throw gone();
        done.push(`patch ${kind} ${name} ${JSON.stringify(patch)}`);
        return { ...endpoint, metadata: { ...endpoint.metadata, resourceVersion: '70' } } as unknown as T;
      },
      delete: async (name, { resourceVersion } = {}) => {
        if (world.isGone) throw gone();
        if (world.conflicts?.includes(name)) throw conflict();
        done.push(`delete ${kind} ${name} at ${resourceVersion}`);
      },
    };
    return client as ResourceClient<T>;
  };
  const recorder = { record: () => {}, flush: async () => {}, dropped: 0 };
  const reconcile = networksReconciler({
    snapshot: () => ({
      ...{ isComplete: true, networks: [], nodes: [], pods: [] },
      ...{ endpoints: [endpoint], fdbEntries: [fdb], neighbors: [neighbor], ...world },
    }),
    clients: {
      networks: clientOf('network'),
      endpoints: clientOf('endpoint'),
      fdbEntries: clientOf('fdb'),
      neighbors: clientOf('neighbor'),
      nodes: clientOf('node'),
      pods: clientOf('pod'),
    },
    ...{ writes: createObjectWrites({ recorder, logger: silentLogger, metrics }), recorder, logger: silentLogger },
    ...{ metrics: l2Metrics(metrics), now },
  });
  return async (given: World) => {
    [done, world] = [[], given];
    return { verdict: await reconcile('cluster', new AbortController().signal), done };
  };
};
const passOf = async (world: World) => {
  const { done, verdict } = await createPasses(() => 0)(world);
  return { done, verdict: verdict.kind };
};
const node = (rest: object = {}): KubeObject => ({ metadata: { name: 'n1', uid: 'u1', ...rest } });
const ENTRIES = ['delete fdb fdb at 8', 'delete neighbor nbr at 9'];
const RELEASE = 'patch endpoint e1 {"metadata":{"uid":"ue","resourceVersion":"7","finalizers":["a.b/c"]}}';

test('of a Node that is gone the entries go first, then the finalizer, then the endpoint, each as it was seen', async () => {
  expect(await passOf({})).toEqual({ done: [...ENTRIES, RELEASE, 'delete endpoint e1 at 70'], verdict: 'done' });
});

test('what a cache still shows of what is gone is counted once', async () => {
  const metrics = createMetrics();
  const pass = createPasses(() => 0, metrics);
  await pass({});
  await pass({ isGone: true });
  // Its finalizer went before it did: a cache is told both, one after the other.
  const released = { ...endpoint, metadata: { ...endpoint.metadata, resourceVersion: '70', finalizers: ['a.b/c'] } };
  await pass({ isGone: true, endpoints: [released] });
  const counted = (await metrics.render())
    .split('\n')
    .filter((line) => line.startsWith('unbounded_l2_orphans_removed_total{'));
  expect(counted.map((line) => line.split(' ').at(-1))).toEqual(['1', '1', '1']);
});

test('an endpoint that is being deleted loses its finalizer and nothing else', async () => {
  const deleted = { ...endpoint, metadata: { ...endpoint.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
  expect((await passOf({ endpoints: [deleted] })).done).toEqual([...ENTRIES, RELEASE]);
});

test('an entry that was changed meanwhile stays, and the endpoint with it, until the next look', async () => {
  expect(await passOf({ conflicts: ['nbr'] })).toEqual({ done: ENTRIES.slice(0, 1), verdict: 'again' });
});

test.each<[string, World]>([
  ['a Node that a cache lacks', { found: { n1: node() } }],
  [
    'a Pod that a cache lacks',
    { nodes: [node()], found: { p1: { metadata: { name: 'p1', uid: 'x' } } }, fdbEntries: [], neighbors: [] },
  ],
  ['an endpoint that a cache lacks', { endpoints: [], found: { e1: endpoint } }],
  ['everything while lists are not complete', { isComplete: false }],
])('nothing is removed because of %s', async (_, world) => {
  expect(await passOf(world)).toEqual({ done: [], verdict: 'done' });
});

test('a Node that was made anew keeps nothing of its predecessor', async () => {
  const created = { ...endpoint, metadata: { ...endpoint.metadata, creationTimestamp: '2026-01-01T00:00:00Z' } };
  const anew = node({ creationTimestamp: '2026-01-01T00:00:01Z' });
  expect((await passOf({ endpoints: [created], nodes: [anew], found: { n1: anew } })).done).toHaveLength(4);
});

test('an endpoint whose Pod is gone is deleted on a living node, and nothing is done for its agent', async () => {
  expect((await passOf({ nodes: [node()], found: { n1: node() } })).done).toEqual(['delete endpoint e1 at 7']);
});

const ODD_NAMES = ['..\\..\\nodes?watch=true&a=/y', '%zz/x', 'shop/..', '../e1', 'shop/e1/x', 'shop/', 'shop/E1', '//'];
test.each(ODD_NAMES)(
  'an entry for endpoint %j, which cannot be, goes without a request, and others with it',
  async (key) => {
    const odd = { ...fdb, status: { ...status, endpoint: key } };
    expect((await passOf({ endpoints: [], fdbEntries: [odd] })).done).toEqual(ENTRIES);
  },
);

test('an endpoint whose Pod has a name that none can have is deleted without a request', async () => {
  const odd = { ...endpoint, spec: { ...endpoint.spec, pod: '..' } };
  const { done } = await passOf({ endpoints: [odd], nodes: [node()], found: { n1: node() } });
  expect(done).toEqual(['delete endpoint e1 at 7']);
});

test('a look-up that is refused keeps nothing else', async () => {
  const other = { ...fdb, metadata: { ...fdb.metadata, name: 'other' }, status: { ...status, endpoint: 'shop/e2' } };
  expect(await passOf({ endpoints: [], fdbEntries: [fdb, other], neighbors: [], refused: ['e1'] })).toEqual({
    done: ['delete fdb other at 8'],
    verdict: 'again',
  });
});

const bare = <T extends FDBEntry | Neighbor>(entry: T): T => ({ ...entry, status: undefined });
const claimed = { nodes: [node()], endpoints: [], fdbEntries: [bare(fdb)], neighbors: [bare(neighbor)] };
const [ABANDONED_MS, START_MS] = [300_000, 1_000];
afterEach(() => void vi.useRealTimers());

test('entries that no node binds for five minutes go, each as it was seen', async () => {
  let nowMs = START_MS;
  const pass = createPasses(() => nowMs);
  expect(await pass(claimed)).toEqual({ done: [], verdict: { kind: 'again', afterMs: ABANDONED_MS } });
  nowMs += ABANDONED_MS - 1;
  expect(await pass(claimed)).toEqual({ done: [], verdict: { kind: 'again', afterMs: 1 } });
  nowMs++;
  expect(await pass(claimed)).toEqual({ done: ENTRIES, verdict: { kind: 'done' } });
});

test('an entry that is bound meanwhile, or made anew, or that a cache may lack, is not abandoned', async () => {
  let nowMs = START_MS;
  const pass = createPasses(() => nowMs);
  const found = { e1: endpoint };
  await pass(claimed);
  nowMs += ABANDONED_MS;
  expect((await pass({ ...claimed, fdbEntries: [fdb], conflicts: ['nbr'], found })).done).toEqual([]);
  const anew = { ...bare(neighbor), metadata: { ...neighbor.metadata, uid: 'other' } };
  const again = await pass({ ...claimed, fdbEntries: [fdb], neighbors: [anew], found });
  expect(again.done).toEqual([]);
  nowMs += ABANDONED_MS;
  expect((await pass({ ...claimed, isComplete: false })).done).toEqual([]);
});

test('a status of an endpoint that does not have the address claims it for nobody, however often it is written', async () => {
  let nowMs = START_MS;
  const pass = createPasses(() => nowMs);
  const stray = (resourceVersion: string) => ({
    ...{ nodes: [node()], pods: [{ metadata: { namespace: 'shop', name: 'p1' } }], fdbEntries: [fdb] },
    neighbors: [
      { ...neighbor, spec: { ...neighbor.spec, ip: '192.0.2.9' }, metadata: { ...neighbor.metadata, resourceVersion } },
    ],
  });
  expect((await pass(stray('9'))).done).toEqual([]);
  nowMs += ABANDONED_MS;
  expect((await pass(stray('10'))).done).toEqual(['delete neighbor nbr at 10']);
});

test('an endpoint whose Pod is on another node is released at once', async () => {
  const pod = { metadata: { namespace: 'shop', name: 'p1', uid: 'u' }, spec: { nodeName: 'n2' } };
  const { done } = await passOf({ nodes: [node()], pods: [pod], found: { p1: pod } });
  expect(done).toEqual([RELEASE, 'delete endpoint e1 at 70']);
});

test('an endpoint whose agent does not take its finalizer off is released ten minutes after its Pod is gone', async () => {
  let nowMs = START_MS;
  const pass = createPasses(() => nowMs);
  const deleted = (resourceVersion: string) => ({
    nodes: [node()],
    endpoints: [
      { ...endpoint, metadata: { ...endpoint.metadata, resourceVersion, deletionTimestamp: '2026-01-01T00:00:00Z' } },
    ],
  });
  expect(await pass(deleted('7'))).toEqual({ done: [], verdict: { kind: 'again', afterMs: 600_000 } });
  nowMs += 599_999;
  expect((await pass(deleted('8'))).done).toEqual([]);
  nowMs++;
  const pod = { metadata: { namespace: 'shop', name: 'p1', uid: 'u' } };
  expect((await pass({ ...deleted('8'), found: { p1: pod } })).done).toEqual([]);
  expect((await pass({ ...deleted('8'), isComplete: false })).done).toEqual([]);
  expect((await pass(deleted('8'))).done).toEqual([RELEASE.replace('"7"', '"8"')]);
});

test('a clock that is set, here or at the API server, neither shortens nor lengthens the five minutes', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  let nowMs = START_MS;
  const pass = createPasses(() => nowMs);
  const createdAt = (time: string) => {
    const entry = { ...bare(fdb), metadata: { ...fdb.metadata, creationTimestamp: time } };
    return { ...claimed, fdbEntries: [entry], neighbors: [] };
  };
  vi.setSystemTime('2026-06-01T00:00:00Z');
  const [past, future] = [createdAt('2020-01-01T00:00:00Z'), createdAt('2030-01-01T00:00:00Z')];
  expect((await pass(past)).done).toEqual([]);
  vi.setSystemTime('2036-06-01T00:00:00Z');
  expect((await pass(future)).done).toEqual([]);
  vi.setSystemTime('2016-06-01T00:00:00Z');
  nowMs += ABANDONED_MS;
  expect((await pass(future)).done).toEqual(ENTRIES.slice(0, 1));
});
