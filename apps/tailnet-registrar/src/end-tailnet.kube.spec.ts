import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { MESH_NAME, tailnetDeviceKind } from '@unbounded/crds';
import { openCluster } from '@unbounded/kube/open-cluster';
import { silentLogger } from '@unbounded/telemetry';
import { type ApiServer, appEntry, installAccessRules, kubeconfigOf, startApiServer, until } from '@unbounded/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { recordObject, records } from './access.testdata.ts';
import { type ControlServer, startControlServer } from './control-server.testdata.ts';
import { endTailnet } from './end-tailnet.ts';
import { clientsOf } from './registrar-objects.ts';
import { createTestCluster, SECRET } from './test-cluster.testdata.ts';

/** What Helm's hook does before an uninstallation, by the rights that the chart gives it. */

let api: ApiServer;
let control: ControlServer;
let world: ReturnType<typeof createTestCluster>;
let kubeconfig: string;

beforeAll(async () => {
  [api, control] = await Promise.all([startApiServer(), startControlServer()]);
  world = createTestCluster(api, control);
  await world.prepare();
  await installAccessRules(api, { 'tailnet-registrar': { enabled: true } });
  kubeconfig = await kubeconfigOf(api, 'tailnet-registrar-uninstall');
});
afterAll(async () => {
  await world?.stopAll();
  await Promise.all([api?.stop(), control?.stop()]);
});

const node = fileURLToPath(new URL('../../../tools/node', import.meta.url));
/** The command of the hook. @returns lines of its log; rejects when it fails */
const runCommand = async (...flags: string[]): Promise<readonly Record<string, unknown>[]> => {
  const args = [appEntry('tailnet-registrar'), 'end-tailnet', '--kubeconfig', kubeconfig, '--settle=10ms', ...flags];
  const { stdout } = await promisify(execFile)(node, args);
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
};
/** In this process, within this time. */
const end = async (timeoutMs: number): Promise<void> => {
  const cluster = openCluster({ kubeconfig });
  const { meshes, devices } = clientsOf(cluster);
  const options = { settleMs: 0, pollMs: 50, logger: silentLogger };
  await endTailnet({ meshes, devices, timeoutMs, ...options }).finally(() => cluster.close());
};
const settings = async () => (await world.clients.meshes.get(MESH_NAME)).spec.tailnet;

test('the devices go, the settings are told so that they can be given again, and it ends with the last record', async () => {
  const app = world.start();
  for (const name of ['web-0', 'web-1']) await world.addPod(name);
  for (const name of ['web-0', 'web-1']) await world.register(name);
  const before = await settings();
  const log = await runCommand('--timeout=30s');
  expect([await settings(), await control.nodes(), await world.clients.devices.listAll()]).toEqual([undefined, [], []]);
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
  const other = openCluster({ kubeconfig: await kubeconfigOf(api, 'tailnet-registrar') });
  const { meshes, devices } = clientsOf(other);
  const beganMs = performance.now();
  const ending = endTailnet({ meshes, devices, timeoutMs: 60_000, settleMs: 0, logger: silentLogger });
  await expect(ending).rejects.toThrow('cannot patch');
  expect(performance.now() - beganMs).toBeLessThan(5000);
  other.close();
});

/** The last: it takes the kinds away. */
test('without a Mesh, and without the kinds, there is nothing to do', async () => {
  api.kubectl('delete', 'mesh', MESH_NAME);
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
