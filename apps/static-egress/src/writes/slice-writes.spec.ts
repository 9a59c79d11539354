import { type EgressNodeSlice, GROUP_VERSION } from '@unbounded/crds';
import { beforeEach, expect, test } from 'vitest';

import { conflict, type LaggingStore, laggingStore } from '../lagging-store.testdata.ts';
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
beforeEach(() => {
  store = laggingStore('EgressNodeSlice', slice('a'), slice('b'), slice('c'));
  term = new AbortController();
});

const CHANGES = [
  { name: 'c', spec: undefined },
  { name: 'a', spec: owning('a') },
  { name: 'd', spec: owning('d') },
  { name: 'a', spec: slice('a').spec },
];
const write = () =>
  writeSlices(CHANGES, store.cache.list(), {
    client: store.client,
    pace: async (signal) => signal.throwIfAborted(),
    signal: term.signal,
    onWritten: () => {},
  });

test('changes are made in their order, two of one slice on top of each other', async () => {
  await write();
  expect(store.writes).toEqual(['delete c', 'update a', 'create d', 'update a']);
  expect(store.objects.get('a')?.spec).toEqual(slice('a').spec);
});

test('the first that is refused ends it', async () => {
  store.onWrite = (name) => {
    if (name === 'd') throw conflict();
  };
  await expect(write()).rejects.toThrow('conflict');
  expect(store.writes).toEqual(['delete c', 'update a']);
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

test('a confirmation on which the plan relied, and that is there no more, ends the round', async () => {
  store.put(slice('a', { released: [{ address: '192.0.2.9', epoch: 1 }] }));
  store.catchUp();
  const planned = write();
  store.put(slice('a', { released: [] }));
  await expect(planned).rejects.toThrow('conflict');
  expect(store.writes).toEqual(['delete c']);
});

test('once the Lease is lost nothing more is written', async () => {
  store.onWrite = (name) => {
    if (name === 'a') term.abort(new Error('no longer leader'));
  };
  await expect(write()).rejects.toThrow('no longer leader');
  expect(store.writes).toEqual(['delete c', 'update a']);
});
