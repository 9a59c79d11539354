import { coreClients, type Node, type ResourceClient } from '@unbounded/kube';
import { silentLogger } from '@unbounded/telemetry';
import { createNode, type OwnApiServer, startApiServer, until } from '@unbounded/testing';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';

import { createInformer, type InformerOptions } from './informer.ts';

let api: OwnApiServer;
let nodes: ResourceClient<Node>;
let stop = new AbortController();
beforeAll(async () => {
  api = await startApiServer();
  nodes = coreClients(api.cluster).nodes;
});
afterEach(async () => {
  stop.abort();
  stop = new AbortController();
  for (const { metadata } of await nodes.listAll()) await nodes.delete(metadata.name);
});
afterAll(() => api?.stop());

const follow = (options: Partial<InformerOptions<Node>> = {}) => {
  const informer = createInformer({
    client: nodes,
    logger: silentLogger,
    backoff: { baseMs: 20, maxMs: 200 },
    ...options,
  });
  const changes: string[] = [];
  informer.on(({ type, object }) => changes.push(`${type} ${object.metadata.name}`));
  void informer.run(stop.signal);
  return { informer, changes };
};
const create = (name: string, zone = 'z') => createNode(nodes, { name, labels: { zone } });
/** An informer's first listing is from the server's memory, which may lag behind what it has stored: nodes of the test before may be in it. */
const inMemoryOfServer = (...names: string[]): Promise<unknown> =>
  until('the server has these in memory and no others', async () => {
    const { items } = await nodes.list({ resourceVersion: '0' });
    return new Set(items.map(({ metadata }) => metadata.name)).symmetricDifference(new Set(names)).size === 0;
  });

test('it is synced only with all pages, then follows every change', async () => {
  const names = ['a', 'b', 'c', 'd', 'e'];
  for (const name of names) await create(name);
  await inMemoryOfServer(...names);
  const { informer, changes } = follow({ pageSize: 2 });
  expect(informer.isSynced).toBe(false);
  await informer.synced;
  expect(informer.list()).toHaveLength(5);
  await nodes.mergePatch('a', { metadata: { labels: { x: '1' } } });
  await nodes.delete('b');
  await until('deleted', () => changes.includes('deleted b'));
  expect(changes).toContain('updated a');
  expect(informer.get('b')).toBeUndefined();
});

test('an index follows the objects', async () => {
  await create('a', 'x');
  await inMemoryOfServer('a');
  const { informer } = follow({ indexers: { zone: ({ metadata }) => [metadata.labels?.['zone'] ?? ''] } });
  await informer.synced;
  expect(informer.byIndex('zone', 'x')).toHaveLength(1);
  await nodes.mergePatch('a', { metadata: { labels: { zone: 'y' } } });
  await until('moved', () => informer.byIndex('zone', 'y').length === 1);
  expect(informer.byIndex('zone', 'x')).toEqual([]);
  expect(() => informer.byIndex('other', 'x')).toThrow('no index "other": there are zone');
});

test('a watch that is cut off goes on without a listing', async () => {
  let [lists, watches] = [0, 0];
  let cut = new AbortController();
  const client: ResourceClient<Node> = {
    ...nodes,
    list: (options) => {
      lists++;
      return nodes.list(options);
    },
    watch: (options) => {
      watches++;
      return nodes.watch({ ...options, signal: AbortSignal.any([options.signal!, cut.signal]) });
    },
  };
  const { informer, changes } = follow({ client });
  await informer.synced;
  await until('watching', () => watches === 1);
  const old = cut;
  cut = new AbortController();
  old.abort();
  await create('meanwhile');
  await until('seen', () => changes.includes('added meanwhile'));
  expect({ lists, isMore: watches > 1 }).toEqual({ lists: 1, isMore: true });
});

test('after an expired version it lists again, and what vanished unseen is reported as deleted', async () => {
  await create('stays');
  await create('goes');
  await inMemoryOfServer('stays', 'goes');
  let isBroken = false;
  const client: ResourceClient<Node> = {
    ...nodes,
    watch: async function* (options) {
      if (!isBroken) return yield* nodes.watch(options);
      isBroken = false;
      yield { type: 'ERROR', object: { code: 410, reason: 'Expired', message: 'too old resource version' } };
    },
  };
  isBroken = true;
  const listed = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  let lists = 0;
  const gated = {
    ...client,
    list: async (options: Parameters<typeof nodes.list>[0]) => {
      if (++lists === 2) {
        listed.resolve();
        await gate.promise; // the node goes between the two listings: no watch sees it
      }
      return nodes.list(options);
    },
  };
  const { informer, changes } = follow({ client: gated });
  await informer.synced;
  await listed.promise;
  await nodes.delete('goes');
  gate.resolve();
  await until('deleted', () => changes.includes('deleted goes'));
  expect(informer.list().map(({ metadata }) => metadata.name)).toEqual(['stays']);
});

test('an API server that restarts is followed again, with nothing lost', async () => {
  await create('before');
  await inMemoryOfServer('before');
  const { informer, changes } = follow();
  await informer.synced;
  await api.kill();
  expect(informer.get('before')).toBeDefined(); // the last known state stays
  await api.start();
  await create('after');
  await nodes.delete('before');
  await until('both seen', () => changes.includes('added after') && changes.includes('deleted before'));
});
