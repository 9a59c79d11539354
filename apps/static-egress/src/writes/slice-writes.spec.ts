import { createObjectWrites } from '@unbounded/controller-runtime';
import { type EgressNodeSlice, GROUP_VERSION } from '@unbounded/crds';
import { ApiError, type EventRecord } from '@unbounded/kube';
import { createMetrics, silentLogger } from '@unbounded/telemetry';
import { beforeEach, expect, test } from 'vitest';

import { conflict, invalid, type LaggingStore, laggingStore } from '../lagging-store.testdata.ts';
import { writeSlices } from './slice-writes.ts';

const slice = (node: string, status: EgressNodeSlice['status'] = {}): EgressNodeSlice => ({
  apiVersion: GROUP_VERSION,
  kind: 'EgressNodeSlice',
  metadata: { name: node },
  spec: { nodeName: node, nodeUID: `uid-${node}`, index: 0 },
  status,
});
const owning = (node: string) => ({
  ...slice(node).spec,
  owned: [{ address: '192.0.2.9', epoch: 1, announce: 'L2' as const }],
});

let store: LaggingStore<EgressNodeSlice>;
let term: AbortController;
let events: EventRecord[];
beforeEach(() => {
  events = [];
  store = laggingStore('EgressNodeSlice', slice('a'), slice('b'), slice('c'));
  term = new AbortController();
});

const CHANGES = [
  { name: 'c', spec: undefined },
  { name: 'a', spec: owning('a') },
  { name: 'd', spec: owning('d') },
  { name: 'a', spec: slice('a').spec },
];
const objectWrites = () =>
  createObjectWrites({
    recorder: { record: (event) => void events.push(event), flush: async () => {}, dropped: 0 },
    logger: silentLogger,
    metrics: createMetrics(),
  });
const write = (
  changes: Parameters<typeof writeSlices>[0] = CHANGES,
  writes = objectWrites(),
  stuck: ReadonlySet<string> = new Set(),
) =>
  writeSlices(changes, store.cache.list(), {
    client: store.client,
    pace: async (signal) => signal.throwIfAborted(),
    signal: term.signal,
    onWritten: () => {},
    writes,
    stuck,
  });
const refuse = (refused: string): void => {
  store.onWrite = (name) => {
    if (name === refused) throw invalid();
  };
};

test('changes are made in their order, two of one slice on top of each other', async () => {
  await write();
  expect(store.writes).toEqual(['delete c', 'update a', 'create d', 'update a']);
  expect(store.objects.get('a')?.spec).toEqual(slice('a').spec);
});

test('a conflict ends it', async () => {
  store.onWrite = (name) => {
    if (name === 'd') throw conflict();
  };
  await expect(write()).rejects.toThrow('conflict');
  expect(store.writes).toEqual(['delete c', 'update a']);
});

test('a server that does not work ends it', async () => {
  store.onWrite = () => {
    throw new ApiError('PUT', 503, { message: 'overloaded' });
  };
  await expect(write()).rejects.toThrow('overloaded');
  expect([store.writes, events]).toEqual([[], []]);
});

test('a slice that is refused for good is told of, and holds up no other one', async () => {
  refuse('d');
  expect(await write()).toEqual(new Set(['d']));
  expect(store.writes).toEqual(['delete c', 'update a', 'update a']);
  expect(events).toMatchObject([{ reason: 'WriteRefused', about: { metadata: { name: 'd' } } }]);
});

test('a refused slice rests, and the others are written meanwhile', async () => {
  const writes = objectWrites();
  refuse('d');
  await write(CHANGES, writes);
  store.catchUp();
  const tried: string[] = [];
  store.onWrite = (name) => void tried.push(name);
  expect(await write(CHANGES.slice(1), writes)).toEqual(new Set(['d']));
  expect(tried).toEqual(['a', 'a']);
  expect(writes.verdict()).toMatchObject({ kind: 'again' });
});

test('an address that a refused slice still has gets no second owner; the rest of the slice is written', async () => {
  store = laggingStore('EgressNodeSlice', { ...slice('a'), spec: owning('a') }, slice('b'));
  const route = { rule: 'r', destinations: ['::/0'], whenUnavailable: 'Drop' as const };
  refuse('a');
  const refused = await write([
    { name: 'a', spec: slice('a').spec },
    { name: 'b', spec: { ...slice('b').spec, routes: [route] } },
    { name: 'b', spec: { ...owning('b'), routes: [route] } },
  ]);
  expect(refused).toEqual(new Set(['a']));
  expect(store.writes).toEqual(['update b']);
  expect(store.objects.get('b')?.spec).toEqual({ ...slice('b').spec, routes: [route] });
});

test('an address that is stuck is gained by no slice, and the rest of the slice is written', async () => {
  const route = { rule: 'r', destinations: ['::/0'], whenUnavailable: 'Drop' as const };
  const change = { name: 'b', spec: { ...owning('b'), routes: [route] } };
  expect(await write([change], objectWrites(), new Set(['192.0.2.9']))).toEqual(new Set());
  expect(store.objects.get('b')?.spec).toEqual({ ...slice('b').spec, routes: [route] });
});

test('a slice that cannot be deleted keeps its addresses from others', async () => {
  store = laggingStore('EgressNodeSlice', { ...slice('gone'), spec: owning('gone') });
  refuse('gone');
  const changes = [
    { name: 'gone', spec: undefined },
    { name: 'b', spec: owning('b') },
  ];
  expect(await write(changes)).toEqual(new Set(['gone']));
  expect(store.objects.get('b')?.spec.owned).toBeUndefined();
});

test('a slice whose spec has changed since the plan is left as it is', async () => {
  store.put({ ...slice('a'), spec: owning('x') });
  await expect(write()).rejects.toThrow('conflict');
  expect(store.writes).toEqual(['delete c']);
});

test('a heartbeat and a further confirmation of the agent end nothing', async () => {
  store.put(slice('a', { heartbeat: 7, released: [{ address: '192.0.2.9', epoch: 1 }] }));
  await write();
  expect(store.writes).toHaveLength(4);
});

const GRANT = { address: '192.0.2.9', epoch: 1 };
const releasing = (released: (typeof GRANT)[]): EgressNodeSlice => ({
  ...slice('a', { released }),
  spec: { ...slice('a').spec, owned: [{ ...GRANT, announce: 'L2' as const, release: true }] },
});
const HANDED_OVER = [
  { name: 'a', spec: slice('a').spec },
  { name: 'b', spec: owning('b') },
  { name: 'd', spec: slice('d').spec },
];

test('a confirmation on which the plan relied, and that is there no more, gives its address no second owner', async () => {
  store = laggingStore('EgressNodeSlice', releasing([GRANT]), slice('b'));
  const planned = write(HANDED_OVER);
  store.put(releasing([]));
  expect(await planned).toEqual(new Set(['a']));
  expect(store.writes).toEqual(['create d']);
  expect(events).toMatchObject([{ reason: 'WriteRefused', note: expect.stringContaining('no longer confirms') }]);
});

test('an agent that writes its status without end holds up its own slice alone', async () => {
  store = laggingStore('EgressNodeSlice', releasing([GRANT]), slice('b'));
  store.onWrite = (name) => {
    if (name === 'a')
      store.put({ ...releasing([GRANT]), status: { released: [GRANT], heartbeat: store.writes.length } });
  };
  expect(await write(HANDED_OVER)).toEqual(new Set(['a']));
  expect(store.writes).toEqual(['create d']);
  expect(events).toMatchObject([{ reason: 'WriteRefused', note: expect.stringContaining('6 times meanwhile') }]);
});

test('confirmations that nothing demands come and go without an effect', async () => {
  store.put(slice('a', { released: [GRANT] }));
  store.catchUp();
  const planned = write();
  store.put(slice('a', { released: [] }));
  await planned;
  expect(store.writes).toEqual(['delete c', 'update a', 'create d', 'update a']);
});

test('a slice that is too large for etcd holds up no other one', async () => {
  store.onWrite = (name) => {
    if (name === 'a') throw new ApiError('PUT', 500, { message: 'etcdserver: request is too large' });
  };
  expect(await write()).toEqual(new Set(['a']));
  expect(store.writes).toEqual(['delete c', 'create d']);
});

test('once the Lease is lost nothing more is written', async () => {
  store.onWrite = (name) => {
    if (name === 'a') term.abort(new Error('no longer leader'));
  };
  await expect(write()).rejects.toThrow('no longer leader');
  expect(store.writes).toEqual(['delete c', 'update a']);
});
