import { setTimeout as delay } from 'node:timers/promises';
import { createTailnetCni, type TailnetCni } from '@unbounded/tailnet-cni';
import { silentLogger } from '@unbounded/telemetry';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { extendResult } from '../attachment/cni-result.ts';
import { createHandlers } from './handlers.ts';
import type { Joining } from './joining.ts';
import { createPodChoice } from './pod-choice.ts';
import {
  addedPod,
  type AgentTrouble,
  NoDevice,
  podOf,
  socketPath,
  startTailnetAgent,
} from './tailnet-agent.testdata.ts';

type Agent = Awaited<ReturnType<typeof startTailnetAgent>>;

let joining: Joining;
let path: string;
let client: TailnetCni;
let agent: Agent | undefined;
let left: string[];
let handlers: ReturnType<typeof createHandlers>;
beforeEach(() => {
  joining = 'OnRequest';
  path = socketPath();
  client = createTailnetCni(path);
  agent = undefined;
  left = [];
  handlers = createHandlers({
    ...{ agent: client, choice: createPodChoice(() => joining, 50), logger: silentLogger, adding: new Set<string>() },
    watch: { during: (_, work) => work() },
    catchUp: { leave: (containerId) => void left.push(containerId) },
  });
});
afterEach(() => {
  client[Symbol.dispose]();
  agent?.stop();
});

const start = async (trouble?: AgentTrouble): Promise<Agent> => (agent = await startTailnetAgent(path, trouble));
const signal = (): AbortSignal => new AbortController().signal;
const add = (name: string, join: string | undefined) => handlers.add(addedPod(name, join), signal());

describe('a pod that does not join', () => {
  test.each<[string | undefined, Joining]>([
    [undefined, 'Off'],
    [undefined, 'OnRequest'],
    ['false', 'UnlessDeclined'],
    ['yes', 'UnlessDeclined'],
  ])('starts, is checked and goes at once while every tailnet part is missing (%j, %s)', async (join, rules) => {
    joining = rules;
    const beganMs = performance.now();
    const all = async (): Promise<unknown> => [
      await add('web', join),
      await handlers.check(podOf('web'), signal()),
      await handlers.remove(podOf('web'), signal()),
    ];
    expect(await Promise.race([all(), delay(1000, 'it waits')])).toEqual([undefined, undefined, undefined]);
    expect(performance.now() - beganMs).toBeLessThan(500);
  });

  test('is nobody’s question where the tailnet agent is there', async () => {
    const { calls } = await start();
    expect(await add('web', undefined)).toBeUndefined();
    await handlers.check(podOf('web'), signal());
    await handlers.remove(podOf('web'), signal());
    expect(calls).toEqual([]);
  });
});

describe('a pod that may join', () => {
  test('gets ts0 behind what the result has, and nothing of that is another', async () => {
    const { requests } = await start({
      add: async () => ({ tailscaleIpv4: '100.64.0.1', tailscaleIpv6: 'fd7a:115c:a1e0::1' }),
    });
    const addition = (await add('web', 'true'))!;
    expect(requests).toEqual([
      {
        ...{ containerId: 'web', netns: '/run/netns/web', ifName: 'eth0', podName: 'web', podNamespace: 'shop' },
        ...{ podUid: 'uid-web', clusterIp: '100.65.1.9' },
      },
    ]);
    const before = {
      cniVersion: '1.0.0',
      interfaces: [{ name: 'cbr0' }, { name: 'eth0', sandbox: '/run/netns/web' }],
      ips: [{ address: '100.65.1.9/24', gateway: '100.65.1.1', interface: 1 }],
      routes: [{ dst: '0.0.0.0/0' }],
      dns: { nameservers: ['10.96.0.10'] },
    };
    expect(extendResult(before, [addition])).toEqual({
      ...before,
      interfaces: [...before.interfaces, { name: 'ts0', sandbox: '/run/netns/web' }],
      ips: [
        ...before.ips,
        { address: '100.64.0.1/32', interface: 2 },
        { address: 'fd7a:115c:a1e0::1/128', interface: 2 },
      ],
    });
    expect(Object.keys(addition)).toEqual(['interfaces', 'ips']);
  });

  test('has the addresses that are known', async () => {
    await start({ add: async () => ({}) });
    expect(await add('web', 'true')).toEqual({ interfaces: [{ name: 'ts0', sandbox: '/run/netns/web' }], ips: [] });
  });

  test('starts without a device where the tailnet agent says that it is to be none', async () => {
    joining = 'UnlessDeclined';
    const { calls } = await start({ add: async () => Promise.reject(new NoDevice('it does not join')) });
    expect(await add('web', undefined)).toBeUndefined();
    expect(calls).toEqual(['add web']);
  });

  test('is tried again with the agent’s words where it cannot be done now', async () => {
    await start({ add: async () => Promise.reject(new Error('the keeper does not run')) });
    await expect(add('web', 'true')).rejects.toThrow('the keeper does not run');
  });

  test('waits for a tailnet agent that is being replaced', async () => {
    const answer = add('web', 'true');
    await delay(50);
    const { calls } = await start();
    expect(await answer).toMatchObject({ ips: [{ address: '100.64.0.1/32' }] });
    expect(calls).toEqual(['add web']);
  });

  test('gives up when its hook does', async () => {
    const ending = AbortSignal.timeout(30);
    await expect(handlers.add(addedPod('web', 'true'), ending)).rejects.toThrow('does not answer at');
  });

  test('goes, and the tailnet agent and the background hear of it', async () => {
    const { calls } = await start();
    await add('web', 'true');
    joining = 'Off';
    await handlers.remove(podOf('web'), signal());
    expect([calls, left]).toEqual([
      ['add web', 'del web'],
      ['web', 'web'],
    ]);
  });

  test('goes also while the tailnet agent is away', async () => {
    await expect(handlers.remove(podOf('web'), AbortSignal.timeout(30))).resolves.toBeUndefined();
  });

  test('goes without waiting for a tailnet agent that is away', async () => {
    expect(await Promise.race([handlers.remove(podOf('web'), signal()), delay(10_000, 'it waits')])).toBeUndefined();
  });

  test.each([
    ['healthy', { healthy: true, message: 'healthy' }, undefined],
    ['without a device', { healthy: false, message: 'pod not found' }, undefined],
    ['with a device that is down', { healthy: false, message: 'its process has ended' }, 'its process has ended'],
  ])('is checked: %s', async (_, answer, expected) => {
    await start({ check: () => answer });
    expect(await handlers.check(podOf('web'), signal())).toBe(expected);
  });

  test('passes its CHECK while the tailnet agent is away', async () => {
    expect(await handlers.check(podOf('web'), AbortSignal.timeout(30))).toBeUndefined();
  });
});
