import { silentLogger } from '@unbounded/telemetry';
import { expect, test } from 'vitest';
import { createGonePods, livingOf } from './gone-pods.ts';
import type { PodAttachment } from './pods.ts';

const pod = (name: string, hostVeth: string | undefined = `veth-${name}`): PodAttachment => ({
  ...{ namespace: 'default', name, uid: name, containerId: name, interface: 'eth0', addresses: ['100.65.30.9'] },
  ...{ netns: `/run/netns/${name}`, hostVeth },
});

/** The first interface of a pod by the pod's name alone. */
const idOf = ({ containerId, interface: name }: Pick<PodAttachment, 'containerId' | 'interface'>): string =>
  name === 'eth0' ? containerId : `${containerId}/${name}`;

/** A node that knows these pods, with these namespaces and links. */
const node = (pods: PodAttachment[], there: { readonly namespaces: string[]; readonly links: string[] }) => {
  const detached: string[] = [];
  const state = { lists: 0, fails: new Set<string>(), wait: Promise.resolve() };
  const detachGone = createGonePods({
    registered: () => pods.filter((one) => !detached.includes(idOf(one))),
    async linkNames() {
      state.lists++;
      return new Set(there.links);
    },
    async detach(containerId, name) {
      const id = idOf({ containerId, interface: name });
      await state.wait;
      if (state.fails.has(id)) throw new Error('busy');
      detached.push(id);
    },
    logger: silentLogger,
    exists: (path) => there.namespaces.includes(path),
  });
  return { detachGone, detached, state };
};

test('a pod whose namespace and port are gone is detached; one that has either is not, nor one whose port nobody knows', async () => {
  const pods = [pod('gone'), pod('lives'), pod('unseen'), pod('leaving'), { ...pod('foreign'), hostVeth: undefined }];
  const { detachGone, detached } = node(pods, {
    namespaces: ['/run/netns/lives', '/run/netns/leaving'],
    links: ['veth-lives', 'veth-unseen'],
  });
  await detachGone();
  expect(detached).toEqual(['gone']);
});

test('what was attached by the name of a Network goes with its container, and is found again if it cannot be detached', async () => {
  const named = (name: string) => ({ ...pod(name), hostVeth: undefined, interface: 'net1' });
  const pods = [
    pod('gone'),
    named('gone'),
    pod('lives'),
    named('lives'),
    pod('unseen'),
    named('unseen'),
    named('other'),
  ];
  const there = { namespaces: ['/run/netns/lives'], links: ['veth-lives', 'veth-unseen'] };
  const { detachGone, detached, state } = node(pods, there);
  state.fails.add('gone/net1');
  await detachGone();
  expect(detached).toEqual([]);
  state.fails.clear();
  await detachGone();
  expect(detached).toEqual(['gone/net1', 'gone']);
});

test('what an agent that starts knows: pods whose namespace or port is there, with what they have by the name of a Network', () => {
  const named = (name: string) => ({ ...pod(name), hostVeth: undefined, interface: 'net1' });
  const pods = [pod('seen'), named('unseen'), pod('unseen'), pod('gone'), named('gone'), named('foreign')];
  const known = livingOf(pods, new Set(['veth-unseen']), (path) => path === '/run/netns/seen');
  expect(pods.filter((one) => known.has(one)).map(idOf)).toEqual(['seen', 'unseen/net1', 'unseen']);
});

test('the links are asked for only while a namespace is missing', async () => {
  const { detachGone, state } = node([pod('a')], { namespaces: ['/run/netns/a'], links: [] });
  await detachGone();
  expect(state.lists).toBe(0);
});

test('one that cannot be detached is tried again, and two calls at a time are one', async () => {
  const { detachGone, detached, state } = node([pod('a')], { namespaces: [], links: [] });
  state.fails.add('a');
  await detachGone();
  expect(detached).toEqual([]);
  state.fails.clear();
  const held = Promise.withResolvers<void>();
  state.wait = held.promise;
  const both = [detachGone(), detachGone()];
  held.resolve();
  await Promise.all(both);
  expect(detached).toEqual(['a']);
});
