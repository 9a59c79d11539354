import { silentLogger } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import { expect, test, vi } from 'vitest';
import type { HookHandlers, HookType } from './hook.port.ts';
import { hookedPods } from './hooks.ts';
import type { PodPorts } from './pod-network.ts';
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

interface TestHook extends Partial<HookType>, HookHandlers {
  readonly section?: string;
  readonly isOpen?: boolean;
}

const openPods = (...hooks: readonly TestHook[]) => {
  const attached: PodAttachment[] = [];
  const calls: string[] = [];
  const asked: string[] = [];
  const ports: PodPorts = {
    attach: async (one) => {
      calls.push(`attach ${one.name}`);
      attached.push(one);
    },
    detach: async (containerId) => {
      const at = attached.findIndex((one) => one.containerId === containerId);
      if (at < 0) return;
      calls.push(`detach ${containerId}`);
      attached.splice(at, 1);
    },
    check: async () => undefined,
  };
  const types = hooks.map((hook, index) => ({
    ...{ section: `s${index}`, order: index, timeoutMs: 1000, unavailable: 'refuse' as const },
    ...hook,
  }));
  const pods = hookedPods({
    hooks: types,
    ports,
    registered: () => attached,
    annotationsOf: async ({ name }) => {
      asked.push(name);
      return { app: name };
    },
    logger: silentLogger,
    lateMs: 50,
  });
  for (const hook of types) if (hook.isOpen !== false) pods.handle(hook.section, hook);
  return { pods, attached, calls, asked };
};
const hang = (): Promise<never> => new Promise(() => undefined);

test('hooks run in their order on ADD, behind the port, and in the reverse order on DEL', async () => {
  const hook = (order: number): TestHook => ({
    order,
    add: async () => void bed.calls.push(`add ${order}`),
    remove: async () => void bed.calls.push(`remove ${order}`),
  });
  const bed = openPods(hook(2), hook(1));
  await bed.pods.attach(pod('a'));
  await bed.pods.detach('a', 'eth0');
  expect(bed.calls).toEqual(['attach a', 'add 1', 'add 2', 'remove 2', 'remove 1', 'detach a']);
});

test('hooks begin before the port is made, and one that breaks there keeps no pod from its port', async () => {
  const bed = openPods(
    { begin: () => void bed.calls.push('begin'), add: async () => void bed.calls.push('add') },
    {
      begin: () => {
        throw new Error('broken');
      },
    },
    { begin: () => void bed.calls.push('of others'), concerns: () => false },
  );
  await bed.pods.attach(pod('a'));
  expect(bed.calls).toEqual(['begin', 'attach a', 'add']);
});

test('annotations that the runtime does not pass are requested while the port is made, once for all hooks', async () => {
  const bed = openPods(
    { begin: (one) => void one.annotations().then(({ app }) => bed.calls.push(`annotations of ${app}`)) },
    {
      add: async (one) => {
        await one.annotations();
        bed.calls.push('add');
      },
    },
  );
  await bed.pods.attach(pod('a'));
  expect([bed.calls.at(-1), bed.asked]).toEqual(['add', ['a']]);
  expect(bed.calls).toContain('annotations of a');
});

test('a hook has to do with the pods that it names', async () => {
  const add = vi.fn(async () => undefined);
  const { pods } = openPods({ add, concerns: ({ namespace }) => namespace === 'example' });
  await pods.attach(pod('a'));
  await pods.attach(pod('b', 'example'));
  expect(add).toHaveBeenCalledTimes(1);
});

test('a pod of a section that is not open is refused before anything is done for it; others are let in', async () => {
  const { pods, calls, attached } = openPods({ isOpen: false, concerns: ({ namespace }) => namespace === 'example' });
  await expect(pods.attach(pod('a', 'example'))).rejects.toThrow('section s0: it is not open');
  await pods.attach(pod('b'));
  expect(calls).toEqual(['attach b']);
  pods.handle('s0', {});
  await pods.attach(pod('a', 'example'));
  expect(attached).toHaveLength(2);
  pods.handle('s0', undefined); // it stops
  await expect(pods.attach(pod('c', 'example'))).rejects.toThrow('section s0: it is not open');
});

test('a section that says so lets pods pass while it is not open', async () => {
  const { pods, attached } = openPods({ isOpen: false, unavailable: 'pass' });
  await pods.attach(pod('a'));
  expect(attached).toHaveLength(1);
});

test('where a hook cannot say whether a pod concerns it, its decision holds for that pod alone, and the pod goes on DEL', async () => {
  const concerns = ({ namespace }: PodAttachment): boolean => {
    if (namespace === 'example') throw new Error('no such policy');
    return false;
  };
  const { pods, attached } = openPods({ concerns });
  const refusal = await pods.attach(pod('a', 'example')).catch((error: unknown) => (error as Error).message);
  expect(refusal).toBe('section s0: cannot tell whether pod example/a concerns it: no such policy');
  expect(pods.problemOf('s0')).toContain('no such policy');
  await pods.attach(pod('b'));
  expect(pods.problemOf('s0')).toContain('no such policy'); // for a while
  attached.push(pod('old', 'example'));
  await pods.detach('old', 'eth0');
  expect(attached.map(({ name }) => name)).toEqual(['b']);
});

test('a hook that does not answer refuses its pod after its time, and is told to give up', async () => {
  let given: AbortSignal | undefined;
  const add = (_: PodAttachment, signal: AbortSignal): Promise<never> => {
    given = signal;
    return hang();
  };
  const { pods, attached } = openPods({ add, timeoutMs: 10 });
  await expect(pods.attach(pod('a'))).rejects.toThrow('section s0: no answer within 10 ms');
  expect(given?.aborted).toBe(true);
  await until('nothing is left of it', () => attached.length === 0);
});

test('what an ADD does after its time is undone, and DEL does not overtake it', async () => {
  const state = new Set<string>();
  const gate = Promise.withResolvers<void>();
  const { pods, attached } = openPods({
    timeoutMs: 10,
    add: async ({ name }) => {
      await gate.promise;
      state.add(name);
    },
    remove: async ({ name }) => void state.delete(name),
  });
  await expect(pods.attach(pod('a'))).rejects.toThrow('no answer');
  const deleted = pods.detach('a', 'eth0');
  await new Promise((resolve) => void setImmediate(resolve));
  expect(attached).toHaveLength(1); // DEL waits
  gate.resolve();
  await deleted;
  expect([...state, ...attached]).toEqual([]);
});

test('an ADD that ends long after it was given up is undone, unless the pod is there by a later one', async () => {
  const state = new Map<string, number>();
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let adds = 0;
  const { pods, attached } = openPods({
    timeoutMs: 10,
    add: async ({ name }) => {
      const count = adds++;
      await gates[count]?.promise;
      state.set(name, count);
    },
    remove: async ({ name }) => void state.delete(name),
  });
  await expect(pods.attach(pod('a'))).rejects.toThrow('no answer');
  await pods.detach('a', 'eth0'); // waits no longer than lateMs
  gates[0]!.resolve();
  await until('its late effect is undone', () => state.size === 0 && adds === 1);
  gates[1]!.resolve();
  await pods.attach(pod('a'));
  expect([attached.length, state.get('a')]).toEqual([1, 1]);
});

test('a pod that one hook refuses is left by the others, too', async () => {
  const remove = vi.fn(async () => undefined);
  const { pods, attached } = openPods({ remove }, { add: async () => Promise.reject(new Error('no address left')) });
  await expect(pods.attach(pod('a'))).rejects.toThrow('section s1: no address left');
  await until('it is undone', () => attached.length === 0);
  expect(remove).toHaveBeenCalledTimes(1);
});

test('containers do not wait for one another', async () => {
  const { pods } = openPods({ timeoutMs: 60_000, add: async ({ name }) => (name === 'slow' ? hang() : undefined) });
  void pods.attach(pod('slow')).catch(() => undefined);
  expect(await pods.attach(pod('quick'))).toEqual([]);
});

test('a pod goes whatever a hook does on DEL, also twice', async () => {
  const { pods, attached } = openPods({ remove: async () => Promise.reject(new Error('broken')) });
  await pods.attach(pod('a'));
  await pods.detach('a', 'eth0');
  await pods.detach('a', 'eth0');
  expect(attached).toEqual([]);
});

test('hooks read annotations of the pod, as the runtime passes them or else from the API server, and add to the result', async () => {
  const seen: string[] = [];
  const hook: TestHook = {
    add: async (one) => {
      seen.push((await one.annotations())['app']!);
      return { interfaces: [{ name: `x${seen.length}` }] };
    },
  };
  const { pods, attached, asked } = openPods(hook, hook);
  expect(await pods.attach(pod('a'))).toEqual([{ interfaces: [{ name: 'x1' }] }, { interfaces: [{ name: 'x2' }] }]);
  await pods.attach(pod('b'), { app: 'passed' });
  expect([seen, asked]).toEqual([['a', 'a', 'passed', 'passed'], ['a']]);
  for (const one of attached) expect(one).not.toHaveProperty('annotations');
});

test('the port of a pod is of the section that says so', async () => {
  const { pods, attached } = openPods(
    {},
    { section: 'l2', port: ({ namespace }) => (namespace === 'lan' ? 'own' : 'bridge') },
  );
  await pods.attach(pod('a', 'lan'));
  await pods.attach(pod('b'));
  expect(attached.map(({ portOf }) => portOf)).toEqual(['l2', undefined]);
});

test('CHECK says what a hook finds wrong, that it cannot look, or that its section is not open', async () => {
  const { pods } = openPods({ check: async () => 'the route is gone' });
  await pods.attach(pod('a'));
  expect(await pods.check('a', 'eth0')).toBe('the route is gone');
  pods.handle('s0', { check: async () => Promise.reject(new Error('broken')) });
  expect(await pods.check('a', 'eth0')).toBe('section s0: broken');
  pods.handle('s0', {});
  expect(await pods.check('a', 'eth0')).toBeUndefined();
  pods.handle('s0', undefined);
  expect(await pods.check('a', 'eth0')).toBe('section s0: it is not open');
});

test('STATUS says why no pod could start: a section that decides about all is not open, or says so itself', async () => {
  const { pods } = openPods({ isOpen: false }, { status: () => 'no address left' });
  expect(pods.status()).toBe('section s0: it is not open');
  pods.handle('s0', {});
  expect(pods.status()).toBe('section s1: no address left');
  pods.handle('s1', {});
  expect(pods.status()).toBeUndefined();
});

test('GC detaches the pods that are not named, by their hooks too, and says which it could not', async () => {
  const removed: string[] = [];
  const { pods, attached } = openPods({ remove: async ({ name }) => void removed.push(name) });
  for (const name of ['a', 'b', 'c']) await pods.attach(pod(name));
  expect(await pods.keepOnly([{ containerId: 'b', interfaceName: 'eth0' }])).toEqual([]);
  expect(attached.map(({ name }) => name)).toEqual(['b']);
  expect(removed.sort()).toEqual(['a', 'c']);
});

test('an interface of a Network is for the section that makes it, and refused where none does', async () => {
  const joins = { configuration: 'lan', network: 'lan' };
  const asked: string[] = [];
  const makes: TestHook = {
    port: ({ joins: own }) => (own ? 'own' : 'bridge'),
    add: async () => void asked.push('l2'),
  };
  const other: TestHook = {
    concerns: ({ joins: own }) => own === undefined,
    add: async () => void asked.push('egress'),
  };
  const bed = openPods(other, makes);
  await bed.pods.attach({ ...pod('a'), interface: 'net1', joins });
  expect(asked).toEqual(['l2']);
  expect(bed.attached).toMatchObject([{ portOf: 's1', joins }]);
  const without = openPods(other);
  await expect(without.pods.attach({ ...pod('a'), interface: 'net1', joins })).rejects.toThrow('Networks are off');
  expect(without.attached).toEqual([]);
});

test('GC of one configuration takes away nothing of another', async () => {
  const joins = (configuration: string) => ({ configuration, network: 'lan' });
  const bed = openPods({ port: ({ joins: own }) => (own ? 'own' : 'bridge') });
  await bed.pods.attach(pod('a'));
  await bed.pods.attach({ ...pod('b'), joins: joins('lan') });
  await bed.pods.attach({ ...pod('c'), joins: joins('office') });
  const names = (): string[] => bed.attached.map(({ name }) => name);
  await bed.pods.keepOnly([], 'lan');
  expect(names()).toEqual(['a', 'c']);
  await bed.pods.keepOnly([]);
  expect(names()).toEqual(['c']);
});
