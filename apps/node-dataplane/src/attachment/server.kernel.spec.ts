import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { createLogger, silentLogger } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openPlanGate } from './plan-gate.ts';
import { createPodRegistry, type PodRegistry } from './pods.ts';
import { type HookedPods, hookedPods } from './hooks.ts';
import type { PodPorts } from './pod-network.ts';
import { type CniServer, startCniServer } from './server.ts';

/** The server with the real plug-in (apps/cni). */
const plugin = join(import.meta.dirname, '../../../cni/build/unbounded-cni');

/** Of pods that are registered, and nothing else: what a pod may send is tested where the kernel does it. */
const portsOf = (registry: PodRegistry): PodPorts => ({
  attach: async (pod) => registry.add(pod),
  detach: async (containerId, interfaceName) => registry.remove(containerId, interfaceName),
  check: async () => undefined,
});
const HOOK = { section: 'example', order: 0, timeoutMs: 60_000, unavailable: 'pass' } as const;
const networkOf = (registry: PodRegistry): HookedPods =>
  hookedPods({
    hooks: [HOOK],
    ports: portsOf(registry),
    registered: () => registry.list(),
    annotationsOf: async () => Promise.reject(new Error('no API server')),
    logger: silentLogger,
  });

let folder: string;
let socket: string;
let pods: PodRegistry;
let server: CniServer;
let network: HookedPods;
let gate: { isOpen: boolean };
const logger = createLogger({ name: 'test', level: 'error' });
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'cni-'));
  socket = join(folder, 'run/cni.sock');
  pods = createPodRegistry(join(folder, 'pods.json'));
  gate = { isOpen: true };
  network = networkOf(pods);
  server = await startCniServer(socket, { pods: network, gate, logger, closeMs: 2000, idleMs: 1500 });
});
afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

const call = async (command: string, config: object | string, container = 'c1', netns = '/run/netns/p1') => {
  const environment = {
    UNBOUNDED_CNI_SOCKET: socket,
    CNI_COMMAND: command,
    CNI_CONTAINERID: container,
    CNI_IFNAME: 'eth0',
    CNI_NETNS: netns,
    CNI_ARGS: 'IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_UID=u-1',
  };
  const child = spawn(plugin, { env: environment, stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(typeof config === 'string' ? config : JSON.stringify(config));
  const output = text(child.stdout);
  const [code] = (await once(child, 'exit')) as [number];
  return { code, output: await output };
};

const prevResult = {
  interfaces: [{ name: 'cbr0' }, { name: 'veth1234' }, { name: 'eth0', sandbox: '/run/netns/p1' }],
  ips: [{ address: '100.65.30.9/24', interface: 2 }],
};
const add = { cniVersion: '1.0.0', name: 'unbounded', type: 'unbounded-cni', prevResult };

describe('the plug-in and the agent', () => {
  test('ADD registers the pod and passes the result of the plug-ins before on', async () => {
    const { code, output } = await call('ADD', add);
    expect(code).toBe(0);
    expect(JSON.parse(output)).toEqual({ cniVersion: '1.0.0', ...prevResult });
    expect(pods.list()).toEqual([
      {
        namespace: 'default',
        name: 'web',
        uid: 'u-1',
        containerId: 'c1',
        netns: '/run/netns/p1',
        interface: 'eth0',
        hostVeth: 'veth1234',
        addresses: ['100.65.30.9/24'],
      },
    ]);
  });

  test('a restarted agent knows the pods, and DEL, also twice, takes them away', async () => {
    await call('ADD', add);
    expect(createPodRegistry(join(folder, 'pods.json')).list()).toHaveLength(1);
    expect(await call('DEL', add)).toEqual({ code: 0, output: '' });
    expect(await call('DEL', add)).toEqual({ code: 0, output: '' });
    expect(createPodRegistry(join(folder, 'pods.json')).list()).toEqual([]);
  });

  test('a pod with as many annotations as Kubernetes allows is attached, and goes', async () => {
    const annotations = { note: '<'.repeat(256 << 10) };
    const runtimeConfig = { 'io.kubernetes.cri.pod-annotations': annotations };
    // Six bytes for each, as encoding/json of Go writes them.
    const config = JSON.stringify({ ...add, runtimeConfig }).replaceAll('<', '\\u003c');
    let passed: unknown;
    network.handle(HOOK.section, {
      add: async (pod) => {
        passed = await pod.annotations();
      },
    });
    expect((await call('ADD', config)).code).toBe(0);
    expect([passed, pods.list()]).toEqual([annotations, [expect.not.objectContaining({ annotations })]]);
    expect(await call('DEL', config)).toEqual({ code: 0, output: '' });
    expect(pods.list()).toEqual([]);
  });

  test('CHECK succeeds, VERSION tells the versions', async () => {
    expect(await call('CHECK', add)).toEqual({ code: 0, output: '' });
    expect(JSON.parse((await call('VERSION', { cniVersion: '1.0.0' })).output)).toHaveProperty('supportedVersions');
  });

  test('ADD without a result of the plug-ins before is an error that says where the plug-in belongs', async () => {
    const { code, output } = await call('ADD', { cniVersion: '1.0.0', name: 'unbounded' });
    expect(code).toBe(1);
    expect(JSON.parse(output)).toMatchObject({ code: 7, msg: expect.stringContaining('after bridge in the list') });
  });

  test.each(['null', '[]', '7', '"x"', 'no json'])(
    'the configuration %s is an error, and the agent goes on',
    async (config) => {
      const { code, output } = await call('ADD', config);
      expect(code).toBe(1);
      expect(JSON.parse(output)).toMatchObject({ code: 7 });
      expect((await call('ADD', add)).code).toBe(0);
    },
  );
});

describe('the hook of a section', () => {
  test('adds to the result', async () => {
    network.handle('example', { add: async () => ({ interfaces: [{ name: 'ts0' }] }) });
    const { output } = await call('ADD', add);
    expect((JSON.parse(output) as typeof add.prevResult).interfaces.at(-1)).toEqual({ name: 'ts0' });
  });

  test('has the plug-in settle interfaces of the pod, and they are not in the result', async () => {
    const argv = ['--pdeathsig', 'KILL', 'unshare', '--net', 'sh', '-c', 'echo there; exec sleep infinity'];
    const holder = spawn('setpriv', argv, { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(holder.stdout, 'data');
    const netns = `/proc/${holder.pid}/ns/net`;
    const inPod = (...words: string[]): string =>
      execFileSync('nsenter', [`--net=${netns}`, 'ip', ...words], { encoding: 'utf8' });
    inPod('link', 'add', 'net1', 'type', 'veth', 'peer', 'name', 'port1');
    const settle = [{ name: 'net1', addresses: ['192.0.2.7/24', '2001:db8::7/64'] }];
    network.handle('example', { add: async () => ({ settle }) });
    const { code, output } = await call('ADD', add, 'c1', netns);
    expect(code).toBe(0);
    expect(JSON.parse(output)).toEqual({ cniVersion: '1.0.0', ...prevResult });
    const shown = inPod('-brief', 'address', 'show', 'dev', 'net1');
    expect(shown).toContain('192.0.2.7/24 2001:db8::7/64');
    holder.kill('SIGKILL');
  });

  test('that wants what cannot be settled has its pod tried again later', async () => {
    network.handle('example', { add: async () => ({ settle: [{ name: 'net1', addresses: ['192.0.2.7'] }] }) });
    const { code, output } = await call('ADD', add);
    expect([code, JSON.parse(output)]).toMatchObject([1, { code: 11 }]);
    network.handle('example', {});
    expect((await call('ADD', add)).code).toBe(0);
  });

  test('may take longer than a client may be silent', async () => {
    network.handle('example', { add: () => delay(2000) });
    expect((await call('ADD', add)).code).toBe(0);
  });

  test('hears of pods that GC takes away, and of no others', async () => {
    const removed: string[] = [];
    network.handle('example', { remove: async ({ containerId }) => void removed.push(containerId) });
    await call('ADD', add);
    const keep = [{ containerID: 'c1', ifname: 'eth0' }];
    const gc = { cniVersion: '1.1.0', name: 'unbounded', 'cni.dev/valid-attachments': keep };
    expect(await call('GC', gc)).toEqual({ code: 0, output: '' });
    expect([pods.list().length, removed]).toEqual([1, []]);
    expect(await call('GC', { ...gc, 'cni.dev/valid-attachments': [] })).toEqual({ code: 0, output: '' });
    expect([pods.list().length, removed]).toEqual([0, ['c1']]);
  });

  test.each([undefined, {}, 'all', [{ containerID: 'c1' }], [null]])(
    'GC with the attachments %j is an error and takes no pod away',
    async (valid) => {
      await call('ADD', add);
      const { code, output } = await call('GC', { cniVersion: '1.1.0', 'cni.dev/valid-attachments': valid });
      expect(code).toBe(1);
      expect(JSON.parse(output)).toMatchObject({ code: 7, msg: expect.stringContaining('cni.dev/valid-attachments') });
      expect(pods.list()).toHaveLength(1);
    },
  );

  test('says that no pod could start', async () => {
    network.handle('example', { status: () => 'no address left' });
    expect(JSON.parse((await call('STATUS', add)).output)).toMatchObject({
      code: 50,
      msg: 'section example: no address left',
    });
  });
});

test('a server that is closed answers what it has begun, cuts off what takes too long, and takes nothing more', async () => {
  const begun: string[] = [];
  network.handle('example', {
    add: async ({ containerId }) => {
      begun.push(containerId);
      await delay(begun.length === 1 ? 200 : 60_000);
    },
  });
  const [quick, slow] = [call('ADD', add, 'quick'), (await until('one', () => begun[0]), call('ADD', add, 'slow'))];
  await until('both have begun', () => begun.length === 2);
  const closed = server.close();
  expect(JSON.parse((await call('ADD', add, 'later')).output)).toMatchObject({ code: 11 });
  expect((await quick).code).toBe(0);
  expect(JSON.parse((await slow).output)).toMatchObject({ code: 11 });
  await closed;
  expect(begun).toEqual(['quick', 'slow']);
});

test('a client that says nothing is cut off', async () => {
  const stranger = connect(socket);
  await once(stranger, 'close');
  expect(stranger.bytesRead).toBe(0);
});

test('only root may talk to the agent', () => {
  expect(statSync(socket).mode & 0o777).toBe(0o600);
});

test('what is no request is refused, and the next one is answered', async () => {
  const stranger = connect(socket);
  stranger.on('error', () => undefined);
  stranger.write(Buffer.alloc(64, 0xff));
  await once(stranger, 'close');
  expect((await call('ADD', add)).code).toBe(0);
});

test('a socket that a killed agent left is taken over', async () => {
  await server.close();
  const successor = await startCniServer(socket, { pods: networkOf(pods), gate, logger });
  expect((await call('ADD', add)).code).toBe(0);
  await successor.close();
});

describe('until a plan is applied in this boot', () => {
  beforeEach(() => {
    gate.isOpen = false;
  });

  test('ADD is to be tried again later', async () => {
    const { code, output } = await call('ADD', add);
    expect(code).toBe(1);
    expect(JSON.parse(output)).toMatchObject({ code: 11, msg: expect.stringContaining('no plan has been applied') });
    expect(pods.list()).toEqual([]);
  });

  test('STATUS says that the plug-in is not available; DEL and CHECK go on', async () => {
    expect(JSON.parse((await call('STATUS', add)).output)).toMatchObject({ code: 50 });
    expect(await call('DEL', add)).toEqual({ code: 0, output: '' });
    expect(await call('CHECK', add)).toEqual({ code: 0, output: '' });
  });

  test('and once it is, pods are let in without a restart', async () => {
    expect((await call('ADD', add)).code).toBe(1);
    gate.isOpen = true;
    expect(await call('STATUS', add)).toEqual({ code: 0, output: '' });
    expect((await call('ADD', add)).code).toBe(0);
    expect(pods.list()).toHaveLength(1);
  });
});

describe('what is kept of a plan that was applied', () => {
  const file = (): string => join(folder, 'run/plan-applied');

  test('lets pods in at once after a restart of the agent, and not in another boot or network', () => {
    const before = openPlanGate(file(), logger);
    expect(before.isOpen).toBe(false);
    before.open();
    expect(before.isOpen).toBe(true);
    expect(openPlanGate(file(), logger).isOpen).toBe(true);
    writeFileSync(
      file(),
      readFileSync(file(), 'utf8').replace(/^./, (digit) => (digit === '0' ? '1' : '0')),
    );
    expect(openPlanGate(file(), logger).isOpen).toBe(false);
  });

  test('need not be written to let pods in', () => {
    writeFileSync(join(folder, 'file'), '');
    const gated = openPlanGate(join(folder, 'file/plan-applied'), createLogger({ name: 'test', level: 'fatal' }));
    gated.open();
    expect(gated.isOpen).toBe(true);
  });
});
