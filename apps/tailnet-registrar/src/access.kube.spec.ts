import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { MESH_NAME, tailnetDeviceKind } from '@unbounded/crds';
import type { Cluster } from '@unbounded/kube';
import { openCluster } from '@unbounded/kube/open-cluster';
import { silentLogger } from '@unbounded/telemetry';
import {
  answerTo,
  type ApiServer,
  appEntry,
  borrowApiServer,
  installAccessRules,
  kubeconfigOf,
  resetCluster,
  until,
} from '@unbounded/testing';
import { NAMESPACE } from '@unbounded/testing/chart';
import { answersTo, refusals, taken } from '@unbounded/testing/write-rows';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import {
  agentMay,
  agentMayNot,
  agentMayNotByPolicy,
  agentMayNotByRole,
  CONDITION,
  recordObject,
  records,
  registrarMay,
  registrarMayNot,
  registrarMayNotByRole,
  uninstallMay,
  uninstallMayNot,
  uninstallMayNotByRole,
} from './access.testdata.ts';
import { type ControlServer, startControlServer } from './control-server.testdata.ts';
import { endTailnet } from './end-tailnet.ts';
import { clientsOf } from './registrar-objects.ts';
import { createTestCluster, SECRET, SHOP } from './test-cluster.testdata.ts';

/** What the programs may write, with the chart's own roles and policies, and what the one of an uninstallation does by them. */

let api: ApiServer;
let control: ControlServer;
let world: ReturnType<typeof createTestCluster>;
const UNINSTALL = 'tailnet-registrar-uninstall';
const open: Cluster[] = [];
const as = async (account: string, node?: string): Promise<Cluster> => {
  const cluster = openCluster({ kubeconfig: await kubeconfigOf(api, account, node) });
  open.push(cluster);
  return cluster;
};
const send = (method: 'POST' | 'PATCH', path: string, body: object): Promise<unknown> => {
  const type = method === 'PATCH' ? { contentType: 'application/merge-patch+json' } : {};
  return api.cluster.transport.send({ method, path, body, ...type });
};

const nodeProgram = fileURLToPath(new URL('../../../tools/node', import.meta.url));
/** The command of the hook. @returns lines of its log; rejects when it fails */
const runCommand = async (...flags: string[]): Promise<readonly Record<string, unknown>[]> => {
  const args = [
    appEntry('tailnet-registrar'),
    'end-tailnet',
    '--kubeconfig',
    await kubeconfigOf(api, UNINSTALL),
    '--settle=10ms',
    ...flags,
  ];
  const { stdout } = await promisify(execFile)(nodeProgram, args);
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
};
/** In this process, within this time. */
const end = async (timeoutMs: number): Promise<void> => {
  const { meshes, devices } = clientsOf(await as(UNINSTALL));
  const options = { settleMs: 0, pollMs: 50, logger: silentLogger };
  await endTailnet({ meshes, devices, timeoutMs, ...options });
};
const settings = async () => (await world.clients.meshes.get(MESH_NAME)).spec.tailnet;

const writeRecords = async (): Promise<void> => {
  const spec = { nodeName: 'n1', automountServiceAccountToken: false, containers: [{ name: 'c', image: 'i' }] };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p1', namespace: SHOP }, spec };
  await send('POST', `/api/v1/namespaces/${SHOP}/pods`, pod);
  for (const number of [1, 2]) await send('POST', records(), recordObject(number));
  const status = { deviceID: 'n1', conditions: [{ ...CONDITION, reason: 'Given' }], keysGiven: 1 };
  await send('PATCH', records('p1', 'status'), { status });
};

beforeAll(async () => {
  [api, control] = await Promise.all([borrowApiServer(), startControlServer()]);
  world = createTestCluster(api, control);
  await world.prepare();
  // The account of the agents is of their own chart.
  await installAccessRules(api, { 'tailnet-registrar': { enabled: true }, tailnet: { enabled: true } });
  await writeRecords();
});
afterAll(async () => {
  for (const cluster of open) cluster.close();
  await world?.stopAll();
  await Promise.all([api?.stop(), control?.stop()]);
});

test('the registrar may write what it writes, and no more', async () => {
  const registrar = await as('tailnet-registrar');
  expect(await answersTo(registrar, registrarMay)).toEqual(taken(registrarMay));
  expect(await answersTo(registrar, registrarMayNotByRole)).toEqual(refusals(registrarMayNotByRole));
});

test('an agent says of the devices of its own node how they are, and nothing else', async () => {
  const agent = await as('tailnet', 'n1');
  expect(await answersTo(agent, agentMay)).toEqual(taken(agentMay));
  expect(await answersTo(agent, agentMayNot)).toEqual(refusals(agentMayNot));
  expect(await answersTo(agent, agentMayNotByRole)).toEqual(refusals(agentMayNotByRole));
});

test('an agent whose token names no node writes nothing', async () => {
  const nobody = await as('tailnet');
  for (const [, write] of agentMay) expect(await answerTo(nobody, write)).toMatchObject({ status: 403 });
});

test('the registrar reads the Secret that the chart names, and no other; an agent reads none', async () => {
  const secret = (name: string) =>
    ({ method: 'GET', path: `/api/v1/namespaces/${NAMESPACE}/secrets/${name}` }) as const;
  const [registrar, agent] = [await as('tailnet-registrar'), await as('tailnet', 'n1')];
  await registrar.transport.send(secret('tailscale-cni-oauth'));
  await expect(registrar.transport.send(secret('other'))).rejects.toThrow('cannot get');
  await expect(agent.transport.send(secret('tailscale-cni-oauth'))).rejects.toThrow('cannot get');
});

test('an uninstallation may remove the tailnet of a Mesh, and nothing else', async () => {
  const uninstall = await as(UNINSTALL);
  expect(await answersTo(uninstall, uninstallMayNot)).toEqual(refusals(uninstallMayNot));
  expect(await answersTo(uninstall, uninstallMayNotByRole)).toEqual(refusals(uninstallMayNotByRole));
  const read = (path: string) => uninstall.transport.send({ method: 'GET', path });
  for (const path of [`/api/v1/namespaces/${NAMESPACE}/secrets`, '/api/v1/pods', records('p1'), '/api/v1/namespaces'])
    await expect(read(path)).rejects.toThrow(' cannot ');
  expect(await answersTo(uninstall, uninstallMay)).toEqual(taken(uninstallMay));
  await world.mesh();
});

test('with its own rights it registers, refuses, tells and removes; nothing that it asks is refused', async () => {
  await world.prepare();
  const app = world.start('--kubeconfig', await kubeconfigOf(api, 'tailnet-registrar'));
  await world.addPod('web-0');
  await world.addPod('bad', { 'net.unbounded-cloud.io/tailnet-tags': 'tag:db' });
  await world.register('web-0');
  await until('an Event', async () =>
    (await world.clients.events.listAll({ namespace: SHOP })).some(({ reason }) => reason === 'TailnetRefused'),
  );
  await world.clear();
  expect(await app.stop()).toBe(0);
  expect(app.log.filter((line) => JSON.stringify(line).includes('"status":403'))).toEqual([]);
});

/** What Helm's hook does, by the rights that the chart gives it. */
describe('before an uninstallation', () => {
  test('the devices go, the settings are told so that they can be given again, and it ends with the last record', async () => {
    const app = world.start();
    for (const name of ['web-0', 'web-1']) await world.addPod(name);
    for (const name of ['web-0', 'web-1']) await world.register(name);
    const before = await settings();
    const log = await runCommand('--timeout=30s');
    expect([await settings(), await control.nodes(), await world.clients.devices.listAll()]).toEqual([
      undefined,
      [],
      [],
    ]);
    expect(log.find(({ mesh }) => mesh === MESH_NAME)?.['tailnet']).toEqual(before);
    expect(before?.credentials).toEqual({ oauthClientSecret: SECRET });
    expect(log.at(-1)?.['msg']).toBe('no device is left');
    await app.stop();
  });

  test('what is left when the time is over is named, with what the registrar says of it and what to do', async () => {
    await world.mesh();
    await api.cluster.transport.send({ method: 'POST', path: records(), body: recordObject(1) });
    const condition = { type: 'Registered', status: 'False', reason: 'NotRemoved', message: 'no answer' };
    const conditions = [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }];
    await world.report('p1', { conditions } as object);
    await expect(end(200)).rejects.toThrow(
      /1 TailnetDevices are left: shop\/p1 \(NotRemoved: no answer\); .*helm uninstall --no-hooks/,
    );
    expect(await settings()).toBeUndefined();
    const failing = runCommand('--timeout=100ms');
    await expect(failing).rejects.toMatchObject({ code: 1, stdout: expect.stringContaining('shop/p1') as string });
    // The registrar takes the finalizer off.
    const ending = end(10_000);
    api.kubectl('patch', 'tailnetdevice', 'p1', '-n', 'shop', '--type=merge', '-p', '{"metadata":{"finalizers":null}}');
    api.kubectl('delete', 'tailnetdevice', 'p1', '-n', 'shop');
    await ending;
  });

  test('who may not, fails at once', async () => {
    await world.mesh();
    const { meshes, devices } = clientsOf(await as('tailnet-registrar'));
    const beganMs = performance.now();
    const ending = endTailnet({ meshes, devices, timeoutMs: 60_000, settleMs: 0, logger: silentLogger });
    await expect(ending).rejects.toThrow('cannot patch');
    expect(performance.now() - beganMs).toBeLessThan(30_000);
  });
});

test('whatever roles of the cluster allow, policies refuse what is not theirs', async () => {
  await writeRecords();
  const [registrar, agent] = [await as('tailnet-registrar'), await as('tailnet', 'n1')];
  const subjects = ['tailnet-registrar', 'tailnet'].map((name) => `--serviceaccount=${NAMESPACE}:${name}`);
  api.kubectl('create', 'clusterrolebinding', 'everything', '--clusterrole=cluster-admin', ...subjects);
  await until('the role is known', async () => {
    const probes = [answerTo(registrar, registrarMayNot.at(-3)![1]), answerTo(agent, agentMayNotByPolicy.at(-1)![1])];
    return !JSON.stringify(await Promise.all(probes)).includes(' cannot ');
  });
  expect(await answersTo(registrar, registrarMayNot)).toEqual(refusals(registrarMayNot));
  expect(await answersTo(agent, agentMayNotByPolicy)).toEqual(refusals(agentMayNotByPolicy));
});

/** The last: it takes the kinds away. */
test('without a Mesh, and without the kinds, there is nothing to do', async () => {
  await resetCluster(api.cluster);
  await expect(end(0)).resolves.toBeUndefined();
  const { plural } = tailnetDeviceKind;
  api.kubectl('delete', 'crd', `${plural}.net.unbounded-cloud.io`, 'meshes.net.unbounded-cloud.io');
  await until('the kinds are gone', () =>
    api.cluster.transport.send({ method: 'GET', path: records() }).then(
      () => false,
      () => true,
    ),
  );
  await expect(end(0)).resolves.toBeUndefined();
});
