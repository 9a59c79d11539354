import type { Informer } from '@unbounded/controller-runtime';
import type { KubeObject } from '@unbounded/kube';
import { expect, test } from 'vitest';

import { createNews } from './news.ts';

type Handler = Parameters<Informer<KubeObject>['on']>[0];

const object = (resourceVersion: string, label = ''): KubeObject => ({
  metadata: { name: 'a', resourceVersion, labels: { label } },
});
const setUp = () => {
  const own = new Set<string>();
  const news = createNews((version) => own.has(version));
  const enqueued: string[] = [];
  let handler: Handler = () => {};
  const cache = { on: (given: Handler) => void (handler = given) };
  news
    .ofOthers(cache, 'cluster', ({ metadata }) => metadata.labels?.['label'] ?? '')
    .connect((key) => enqueued.push(key));
  return { own, news, enqueued, change: (change: Parameters<Handler>[0]) => handler(change) };
};

test('what others write is news once', () => {
  const { news, enqueued, change } = setUp();
  expect(news.take()).toBe(false);
  change({ type: 'added', object: object('1') });
  expect([news.take(), news.take(), enqueued]).toEqual([true, false, ['cluster']]);
});

test('what we wrote is none, also if it was heard of before the answer', () => {
  const { own, news, enqueued, change } = setUp();
  change({ type: 'updated', previous: object('1'), object: object('2', 'x') });
  own.add('2');
  expect([news.take(), enqueued]).toEqual([false, ['cluster']]);
  change({ type: 'updated', previous: object('2', 'x'), object: object('3') });
  expect(news.take()).toBe(true);
});

test('an update that leaves what counts as it was concerns nobody', () => {
  const { news, enqueued, change } = setUp();
  change({ type: 'updated', previous: object('1'), object: object('2') });
  expect([news.take(), enqueued]).toEqual([false, []]);
});

test('a deletion is news', () => {
  const { own, news, change } = setUp();
  own.add('2');
  change({ type: 'deleted', object: object('3') });
  expect(news.take()).toBe(true);
});

test('a resync is news, although nothing has changed', () => {
  const { news } = setUp();
  expect([...news.all({ connect: () => {}, keys: () => ['cluster'] }).keys()]).toEqual(['cluster']);
  expect(news.take()).toBe(true);
});
