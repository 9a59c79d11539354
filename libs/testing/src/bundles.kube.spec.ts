import { spawn } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { type ApiServer, appEntry, borrowApiServer, resetCluster, startApp, until } from './index.ts';

const node = fileURLToPath(new URL('../../../tools/node', import.meta.url));
let api: ApiServer;
beforeAll(async () => {
  api = await borrowApiServer();
  await resetCluster(api.cluster);
});
afterAll(() => api?.stop());

test('the bundle of status-aggregator starts, serves by its certificate and ends cleanly', async () => {
  expect(appEntry('status-aggregator'), 'no bundle, or an old one: run tools/build').toContain('/dist/');
  const app = startApp('status-aggregator', ['--kubeconfig', api.kubeconfig, '--port', '0', '--namespace', 'default']);
  await until('ready', async () => (await app.health('/readyz')).status === 200);
  expect((await app.health('/metrics')).body).toContain('unbounded_status_clients 0');
  expect(await app.stop()).toBe(0);
});

test('the bundle of tailnet serves pods where there is nothing but the bundle, as in the image', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bundle-'));
  const bundle = join(folder, 'main.mjs');
  copyFileSync(appEntry('tailnet'), bundle);
  const folders = ['--state-dir', join(folder, 'state'), '--run-dir', join(folder, 'run')];
  const socket = join(folder, 'daemon.sock');
  const flags = ['--kubeconfig', api.kubeconfig, '--node-name', 'n1', '--health-port', '0', '--socket', socket];
  const app = spawn(node, [bundle, ...flags, ...folders], { stdio: ['ignore', 'ignore', 'inherit'] });
  try {
    // The agent gives the socket its mode after the kernel has made it.
    const mode = () => (statSync(socket, { throwIfNoEntry: false })?.mode ?? 0) & 0o777;
    await until('it serves its user and its group', () => mode() === 0o660);
    expect(app.exitCode).toBeNull();
  } finally {
    app.kill('SIGKILL');
    rmSync(folder, { recursive: true });
  }
});

test.each(['cidr-allocator', 'site-membership', 'gateway-health', 'static-egress', 'l2-networks', 'tailnet-registrar'])(
  'the bundle of %s starts, works and ends cleanly',
  async (name) => {
    expect(appEntry(name), 'no bundle, or an old one: run tools/build').toContain('/dist/');
    const app = startApp(name, ['--kubeconfig', api.kubeconfig]);
    await until('ready', async () => (await app.health('/readyz')).status === 200);
    expect((await app.health('/metrics')).body).toContain('rest_client_requests_total');
    await until('leader', () => app.log.some(({ msg }) => msg === 'became leader'));
    expect(await app.stop()).toBe(0);
  },
);
