import type { KubeObject } from '@unbounded/kube';
import { beforeEach, expect, test } from 'vitest';

import { type LaggingStore, laggingStore } from '../lagging-store.testdata.ts';
import { createOwnWrites, type OwnWrites } from './own-writes.ts';

const object = (name: string): KubeObject => ({ metadata: { name } });
const { signal } = new AbortController();
let store: LaggingStore<KubeObject>;
let own: OwnWrites;
beforeEach(() => {
  store = laggingStore('Thing', object('a'));
  own = createOwnWrites([store]);
});

test('without writes nothing is expected', () => {
  expect(own.areSeen()).toBe(true);
});

test.each([
  ['created', () => own.noting(store).create(object('b'))],
  ['updated', () => own.noting(store).update(store.objects.get('a')!)],
  ['applied', () => own.noting(store).apply(object('a'), { fieldManager: 'test' })],
  ['deleted', () => own.noting(store).delete('a')],
])('what was %s is expected until the cache shows it', async (_, write) => {
  await write();
  expect(own.areSeen()).toBe(false);
  store.catchUp();
  expect(own.areSeen()).toBe(true);
});

test('a version is known as ours once, that of somebody else never', async () => {
  const { metadata } = await own.noting(store).update(store.objects.get('a')!);
  store.put(object('a'));
  const others = store.objects.get('a')!.metadata.resourceVersion!;
  const version = metadata.resourceVersion!;
  expect([own.isOwn(others), own.isOwn(version), own.isOwn(version)]).toEqual([false, true, false]);
});

test('a newer write by somebody else shows ours, too', async () => {
  await own.noting(store).update(store.objects.get('a')!);
  store.put(object('a'));
  store.catchUp();
  expect(own.areSeen()).toBe(true);
});

test('an object that was in the cache and is deleted since is not waited for', async () => {
  await own.noting(store).create(object('b'));
  store.catchUp();
  await store.client.delete('b');
  store.catchUp();
  expect(own.areSeen()).toBe(true);
});

test('after a refresh that is expected which others wrote, and what was deleted before the cache had it is not', async () => {
  await own.noting(store).create(object('b'));
  await store.client.delete('b');
  store.put(object('c'));
  await store.client.delete('a');
  store.put(object('a'));
  await own.refresh(signal);
  expect(own.areSeen()).toBe(false);
  store.catchUp();
  expect(own.areSeen()).toBe(true);
});

test('a refused write is not expected', async () => {
  store.onWrite = () => {
    throw new Error('refused');
  };
  await expect(own.noting(store).create(object('b'))).rejects.toThrow('refused');
  expect(own.areSeen()).toBe(true);
});
