import { silentLogger } from '@unbounded/telemetry';
import { expect, test, vi } from 'vitest';
import { type AttachmentHook, hookedPods } from './hooks.ts';
import type { PodNetwork } from './pod-network.ts';
import type { PodAttachment } from './pods.ts';

const pod = (name: string, namespace = 'default'): PodAttachment => ({
  namespace,
  name,
  uid: name,
  containerId: name,
  netns: `/run/netns/${name}`,
  interface: 'eth0',
  hostVeth: `veth-${name}`,
  addresses: [],
});

const open = (...hooks: readonly Partial<AttachmentHook>[]) => {
  const attached: PodAttachment[] = [];
  const base: PodNetwork = {
    attach: async (one) => void attached.push(one),
    detach: async (containerId) => {
      attached.splice(
        attached.findIndex((one) => one.containerId === containerId),
        1,
      );
    },
    check: async () => undefined,
  };
  const pods = hookedPods(base, { registered: () => attached, logger: silentLogger });
  const remove = hooks.map((hook) => pods.addHook({ section: 'example', order: 0, timeoutMs: 1000, ...hook }));
  return { pods, attached, remove };
};

test('hooks run in their order on ADD, and in the reverse order on DEL', async () => {
  const calls: string[] = [];
  const hook = (order: number): Partial<AttachmentHook> => ({
    order,
    add: async () => void calls.push(`add ${order}`),
    remove: async () => void calls.push(`remove ${order}`),
  });
  const { pods } = open(hook(2), hook(1));
  await pods.attach(pod('a'));
  await pods.detach('a', 'eth0');
  expect(calls).toEqual(['add 1', 'add 2', 'remove 2', 'remove 1']);
});

test('a hook has to do with the pods that it names', async () => {
  const add = vi.fn(async () => undefined);
  const { pods } = open({ add, concerns: ({ namespace }) => namespace === 'example' });
  await pods.attach(pod('a'));
  await pods.attach(pod('b', 'example'));
  expect(add).toHaveBeenCalledTimes(1);
});

test('a hook that does not answer refuses its pod after its time, and is told to give up', async () => {
  let given: AbortSignal | undefined;
  const add = (_: PodAttachment, signal: AbortSignal): Promise<void> => {
    given = signal;
    return new Promise(() => undefined);
  };
  const { pods } = open({ add, timeoutMs: 10 });
  await expect(pods.attach(pod('a'))).rejects.toThrow('section example: no answer within 10 ms');
  expect(given?.aborted).toBe(true);
});

test('a pod goes whatever a hook does on DEL', async () => {
  const { pods, attached } = open({ remove: async () => Promise.reject(new Error('broken')) });
  await pods.attach(pod('a'));
  await pods.detach('a', 'eth0');
  await pods.detach('a', 'eth0');
  expect(attached).toEqual([]);
});

test('CHECK says what a hook finds wrong, or that it cannot look', async () => {
  const { pods, remove } = open({ check: async () => 'the route is gone' });
  await pods.attach(pod('a'));
  expect(await pods.check('a', 'eth0')).toBe('the route is gone');
  remove[0]!();
  expect(await pods.check('a', 'eth0')).toBeUndefined();
  pods.addHook({ section: 'x', order: 0, timeoutMs: 10, check: async () => Promise.reject(new Error('broken')) });
  expect(await pods.check('a', 'eth0')).toBe('section x: broken');
});
